/**
 * Checks in threads: hostile schemas, and values that take long.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  CheckFailedError,
  SchemaChecker,
  checkTimeoutMs,
  checkWaitMs,
  maxSlowChecks,
  slowSchemaMs,
} from "../../../../worker/invocation/arguments/schema-checker.ts";
import { schemaProblem } from "../../../../worker/protocol/discovery/schema-problems.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import type { Json, JsonObject } from "../../../../worker/support/json/json.ts";
import { evaluated } from "../../../support/threads/evaluated.ts";

/** Milliseconds that are added to the system's. */
let laterMs = 0;
/** Milliseconds that checks have in place of {@link checkTimeoutMs}. */
let checkMs: number;
/** Milliseconds that checks wait in place of {@link checkWaitMs}. */
let waitMs: number;
const clock: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs() + laterMs,
  sleep: (ms, signal) => {
    const shorter = new Map([
      [checkTimeoutMs, checkMs],
      [checkWaitMs, waitMs],
    ]);
    return systemClock.sleep(shorter.get(ms) ?? ms, signal);
  },
};
const { signal } = new AbortController();
const promise = { tags: "promise-R13" };
let checker: SchemaChecker;

beforeEach(() => {
  laterMs = 0;
  [checkMs, waitMs] = [30_000, 30_000];
  checker = new SchemaChecker(clock);
});
afterEach(() => checker[Symbol.asyncDispose]());

function check(schema: JsonObject, value: Json, over = signal) {
  return checker.check({ schema, value, coerce: false, isSecret: false }, over);
}

const backtracking = { type: "string", pattern: "^(a+)+$" };
const long = `${"a".repeat(60)}!`;
/** What needs a thread, too. */
const quick = { type: "string", pattern: "" };

/** A check whose time is over soon. */
async function checkShortly(schema: JsonObject, value: Json): Promise<unknown> {
  checkMs = 100;
  try {
    return await check(schema, value);
  } finally {
    checkMs = 30_000;
  }
}

describe("a check that would take years", () => {
  test("ends, after three is not tried for a minute, and stops no other", promise, async () => {
    for (let count = 1; count <= maxSlowChecks; count++) {
      expect(await check(backtracking, "a")).toEqual({ ok: true });
      await expect(checkShortly(backtracking, long)).rejects.toThrow("too much time");
    }
    expect(await check(quick, long)).toEqual({ ok: true });
    await expect(check(backtracking, "a")).rejects.toThrow("is too slow");
    laterMs = slowSchemaMs;
    expect(await check(backtracking, "a")).toEqual({ ok: true });
  });

  test("ends with its call", async () => {
    const call = new AbortController();
    const checked = check(backtracking, long, call.signal);
    call.abort(new Error("the call is over"));
    await expect(checked).rejects.toThrow("the call is over");
    expect(await check(backtracking, "a")).toEqual({ ok: true });
  });
});

describe("schemas that were too slow", () => {
  const slow = (name: string) => ({ ...backtracking, title: name });

  test(
    "take one thread together, so that others are checked meanwhile",
    { tags: ["full", promise.tags] },
    async () => {
      const schemas = ["a", "b", "c"].map(slow);
      for (const schema of schemas)
        await expect(checkShortly(schema, long)).rejects.toThrow("too much time");
      const call = new AbortController();
      const again = schemas.map((schema) => check(schema, long, call.signal).catch(String));
      // The second one begins when the slow ones have what they get.
      for (const text of ["x", "y"]) expect(await check(quick, text)).toEqual({ ok: true });
      call.abort(new Error("the call is over"));
      expect(await Promise.all(again)).toEqual(schemas.map(() => "Error: the call is over"));
    },
  );

  test("as one that was not yet, take one thread each", promise, async () => {
    const call = new AbortController();
    const schema = slow("a");
    const all = [1, 2, 3].map(() => check(schema, long, call.signal).catch(String));
    for (const text of ["x", "y"]) expect(await check(quick, text)).toEqual({ ok: true });
    call.abort(new Error("the call is over"));
    await Promise.all(all);
  });

  test("keep no check waiting without end", promise, async () => {
    waitMs = 50;
    const call = new AbortController();
    const schema = slow("a");
    const first = check(schema, long, call.signal).catch(String);
    await expect(check(schema, "a")).rejects.toThrow(new CheckFailedError("waited too long"));
    call.abort(new Error("the call is over"));
    await first;
    expect(await check(schema, "a")).toEqual({ ok: true });
  });
});

describe("a schema of alternatives of alternatives", () => {
  const levels = Array.from({ length: 40 }, (_, level) => {
    const next = { $ref: `#/$defs/n${level + 1}` };
    return [`n${level}`, { anyOf: [next, next] }] as const;
  });
  const schema = {
    $defs: { ...Object.fromEntries(levels), n40: { type: "integer" } },
    $ref: "#/$defs/n0",
  };

  test("is accepted, since it is small, and its check ends", promise, async () => {
    expect(schemaProblem(schema)).toBeUndefined();
    await expect(checkShortly(schema, "x")).rejects.toThrow(CheckFailedError);
  });
});

test(
  "a value that surely fits takes no thread, and no time of a slow schema's",
  promise,
  async () => {
    const call = new AbortController();
    const slow = ["a", "b"].map((title) => check({ ...backtracking, title }, long, call.signal));
    expect(await check({ type: "string" }, long)).toEqual({ ok: true });
    call.abort(new Error("the call is over"));
    await Promise.allSettled(slow);
    await expect(check({ type: "string" }, long, call.signal)).rejects.toThrow("the call is over");
  },
);

test("arguments are checked whatever options the process has", { tags: "full" }, async () => {
  const worker = import.meta.resolve("../../../../worker/");
  const { stdout } = await evaluated(`
    import { SchemaChecker } from "${worker}invocation/arguments/schema-checker.ts";
    import { systemClock } from "${worker}support/clock.ts";
    await using checker = new SchemaChecker(systemClock);
    const request = { schema: { type: "string" }, value: 1, coerce: false, isSecret: false };
    const { mismatch } = await checker.check(request, new AbortController().signal);
    console.log(mismatch.message);`);
  expect(stdout).toBe("expected text, found 1\n");
});
