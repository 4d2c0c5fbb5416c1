/**
 * The catalog of attacks, its programs and its page belong together.
 */
import { readFileSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { unpromisedUnder } from "../../../scripts/docs/unpromised.ts";
import { attackJson, attackVerdicts } from "../../../worker/doctor/attacks/attack-report.ts";
import { isMade } from "../../../worker/doctor/attacks/attack-starts.ts";
import { attacks } from "../../../worker/doctor/attacks/catalog.ts";

const programs = new URL("../../../attacks/", import.meta.url);
const page = readFileSync(new URL("../../../docs/attacks.md", import.meta.url), "utf8");

describe("the catalog of attacks", () => {
  test("has every program below attacks/ once, and no other", () => {
    const files = readdirSync(programs).filter((name) => name.endsWith(".py"));
    const ids = attacks.map(({ id }) => `${id}.py`);
    expect(ids.toSorted()).toEqual(files.toSorted());
  });

  test("makes imports attack what a template must not reach", () => {
    const made = attacks.filter((attack) => isMade(attack, "import"));
    expect(new Set(made.map(({ group }) => group))).toEqual(
      new Set(["files", "processes", "privileges", "kernel", "network"]),
    );
    expect(attacks.filter((one) => one.notPromisedAtImport && !isMade(one, "import"))).toEqual([]);
  });

  test("leaves nothing unpromised but what a profile opens and what nobody can count", () => {
    const ids = attacks.filter((attack) => unpromisedUnder(attack) !== "").map(({ id }) => id);
    expect(ids.toSorted()).toEqual([
      "call_under_wider_profile",
      "cpu_in_short_lives",
      "disk_mapped",
      "disk_on_its_way",
      "listen_on_host",
      "memory_cut_off",
      "memory_in_sockets",
      "pseudo_terminals",
      "reach_abstract_socket",
      "reach_loopback_service",
      "reach_metadata_service",
      "read_host_configuration",
      "resolve_names",
      "take_channel",
    ]);
  });
});

test("docs/attacks.md shows the JSON as it is", () => {
  const shown = JSON.parse(/^```json\n(.*?)^```$/ms.exec(page)?.[1] ?? "") as object;
  const baseline = { reached: true, evidence: "", durationMs: 1 };
  const what = { id: "a", group: "files", title: "", profile: "p", start: "cold" } as const;
  const row = { ...what, verdict: "held", reason: undefined, evidence: "", durationMs: 1 } as const;
  const made = JSON.parse(
    attackJson({
      profiles: [{ name: "p", start: "cold", works: true, evidence: "", unenforced: [] }],
      rows: [{ ...row, baseline }],
    }),
  ) as object;
  expect(keysOf(shown)).toEqual(keysOf(made));
});

test("docs/attacks.md explains every verdict", () => {
  const rows = [...page.matchAll(/^\| `([a-z-]+)` +\| (.+?) +\|/gm)].map(([, word, words]) => [
    word,
    words,
  ]);
  for (const verdict of Object.entries(attackVerdicts)) expect(rows).toContainEqual(verdict);
});

/** The names of members, in their order, also of what is within. */
function keysOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(keysOf);
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).map(([key, member]) => [key, keysOf(member)]);
}
