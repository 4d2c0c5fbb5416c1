/**
 * Which starts of calls are attacked, and what a call proves that had another one.
 */
import { describe, expect, test } from "vitest";
import type { Observation } from "../../../worker/doctor/attacks/attack.ts";
import {
  type AttackStart,
  type StartChoice,
  isMade,
  startOfCall,
  startsToAttack,
} from "../../../worker/doctor/attacks/attack-starts.ts";
import { judge, verdictOn } from "../../../worker/doctor/attacks/attack-verdict.ts";
import type { ExecutionReport, StartKind } from "../../../worker/protocol/execution.ts";

describe("the starts to be attacked", () => {
  test.each<[StartChoice, StartKind, readonly AttackStart[]]>([
    ["usual", "template", ["cold", "template", "import"]],
    ["usual", "pool", ["cold", "pool"]],
    ["usual", "cold", ["cold"]],
    ["all", "cold", ["cold", "pool", "template", "import"]],
    ["cold", "template", ["cold"]],
    ["pool", "cold", ["pool"]],
    ["template", "cold", ["template", "import"]],
  ])("are, when %s are asked for and tools get %s, %j", (choice, auto, starts) => {
    expect(startsToAttack(choice, auto)).toEqual(starts);
  });

  test("are made by every attack, but for imports, which have no call", () => {
    expect(isMade({ group: "limits" }, "template")).toBe(true);
    expect(isMade({ group: "limits" }, "import")).toBe(false);
    expect(isMade({ group: "privileges" }, "import")).toBe(true);
    expect(startOfCall("import")).toBe("template");
  });
});

describe("a run", () => {
  const baseline = { reached: true };
  const ran = (start: StartKind, toolResult = { reached: false, evidence: "ENOENT" }) =>
    ({
      outcome: {
        kind: "success",
        toolResult,
        createdArtifacts: [],
        executionTimeMs: 1,
        execution: { start } as ExecutionReport,
      },
    }) as unknown as Observation;
  const verdict = (observation: Observation, start: AttackStart) =>
    verdictOn({}, undefined, [], judge({}, observation, start), baseline);

  test.each(["cold", "pool", "template"] as const)("by the start %s counts for it", (start) => {
    expect(verdict(ran(start), start)).toMatchObject({ verdict: "held" });
  });

  test("of an import is a call from its template", () => {
    expect(verdict(ran("template"), "import")).toMatchObject({ verdict: "held" });
    expect(verdict(ran("template", { reached: true, evidence: "x" }), "import")).toMatchObject({
      verdict: "not-held",
    });
  });

  test.each<[AttackStart, StartKind]>([
    ["pool", "cold"],
    ["template", "pool"],
    ["cold", "template"],
    ["import", "cold"],
  ])("that was to have the start %s and had %s proves nothing", (start, had) => {
    const reason = `its call was to have the start ${startOfCall(start)}, and had ${had}`;
    expect(verdict(ran(had), start)).toEqual({ verdict: "broken", reason });
    const reached = ran(had, { reached: true, evidence: "x" });
    expect(verdict(reached, start)).toEqual({ verdict: "broken", reason });
  });

  test("of an import is judged by what it said, since nobody saw it happen", () => {
    const attack = { judge: () => ({ blocked: false, evidence: "the worker saw it" }) };
    expect(judge(attack, ran("template"), "import")).toEqual({ blocked: true, evidence: "ENOENT" });
    expect(judge(attack, ran("template"), "template")).toMatchObject({ blocked: false });
  });
});
