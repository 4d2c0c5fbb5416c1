/**
 * Lines of the audit log: whole, short, and in no caller's power.
 */
import { createHash } from "node:crypto";
import { describe, expect } from "vitest";
import { anyCharacter, fc, test } from "../../../support/properties/property.ts";
import { auditFields } from "../../../../worker/telemetry/audit/event.ts";
import { maxRuleBytes } from "../../../../worker/invocation/audit/call-audit.ts";
import { encodeLine, maxLineBytes, shortened } from "../../../../worker/telemetry/audit/line.ts";

const own = { audit: 1, time: "2026-03-04T05:06:07.089Z", worker: "w" };
const names = ["request", "task", "agent", "user", "session", "artifact"] as const;

const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 1_000 }),
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)), maxLength: 1_000 }),
  fc
    .constantFrom("\n", "\u202e", "\u{e0001}", '"', "\ud800", "€")
    .map((text) => text.repeat(1_000)),
);

describe("a line", { tags: "promise-R10" }, () => {
  test.prop([fc.record(Object.fromEntries(names.map((name) => [name, anyText])))])(
    "is one line of JSON in printable characters, which an append writes whole",
    (texts) => {
      const line = encodeLine({ ...own, event: "call.end", tool: "t".repeat(100), ...texts });
      expect(line.byteLength).toBeLessThanOrEqual(maxLineBytes);
      const text = line.toString();
      expect(text.endsWith("}\n")).toBe(true);
      expect(text.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      const read = JSON.parse(text) as Record<string, unknown>;
      expect(Object.keys(read)).toEqual(Object.keys(auditFields).filter((field) => field in read));
      for (const name of names) {
        if (Buffer.byteLength(JSON.stringify(texts[name])) <= 80) {
          expect(read[name]).toBe(texts[name]);
        }
      }
    },
  );
});

test(
  "a line of a connection is one append, whatever tool and rules say",
  { tags: "promise-R10" },
  () => {
    const texts = Object.fromEntries(names.map((name) => [name, "\n".repeat(1_000)]));
    const line = encodeLine({
      ...{ ...own, ...texts, artifact: undefined, worker: "w".repeat(100), tool: "t".repeat(100) },
      ...{ event: "egress", call: "9f86d081884c7d65", name: "\n".repeat(255), port: 65_535 },
      ...{ address: "2001:db8:1234:5678:9abc:def0:1234:5678", verdict: "refused" },
      ...{ rule: shortened("r".repeat(1_000), maxRuleBytes), reason: "too-many-connections" },
      ...{ sentBytes: Number.MAX_SAFE_INTEGER, receivedBytes: Number.MAX_SAFE_INTEGER },
      durationMs: 600_000,
    });
    expect(line.byteLength).toBeLessThanOrEqual(maxLineBytes);
  },
);

test.prop([anyText])("a text that is shortened once stays as it is", (text) => {
  const once = shortened(text);
  expect(shortened(once)).toBe(once);
  const [start = ""] = once.split("…sha256:");
  expect(text.startsWith(start)).toBe(true);
  if (text.isWellFormed()) expect(once.isWellFormed()).toBe(true);
});

test("a long name keeps its beginning, and a digest that tells it from others", () => {
  const long = "a".repeat(1_000);
  const { user } = JSON.parse(encodeLine({ ...own, event: "call.end", user: long }).toString()) as {
    user: string;
  };
  const digest = createHash("sha256").update(long).digest("hex").slice(0, 16);
  expect(user).toMatch(new RegExp(`^a{400,}…sha256:${digest}$`));
});

test("fields without a value are left out, and the schema's version comes first", () => {
  const line = encodeLine({ ...own, event: "call.end", started: false, user: undefined });
  expect(line.toString()).toBe(
    `{"audit":1,"time":"${own.time}","event":"call.end","worker":"w","started":false}\n`,
  );
});
