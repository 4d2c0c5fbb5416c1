/**
 * Who judges the attacks on limits and on the worker: by what the worker saw, not by what the
 * attack says.
 */
import { readFile, readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import type { Attack, Observation } from "../../../worker/doctor/attacks/attack.ts";
import { judge } from "../../../worker/doctor/attacks/attack-verdict.ts";
import { egressAttacks } from "../../../worker/doctor/attacks/catalog/egress.ts";
import { gatewayAttacks } from "../../../worker/doctor/attacks/catalog/gateway.ts";
import { limitsAttacks } from "../../../worker/doctor/attacks/catalog/limits.ts";
import { workerAttacks } from "../../../worker/doctor/attacks/catalog/worker.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { InvocationOutcome } from "../../../worker/protocol/invocation.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

const programs = new URL("../../../attacks/", import.meta.url);
const token = "0123456789abcdef";
const attacks = new Map(
  [...limitsAttacks, ...workerAttacks, ...egressAttacks, ...gatewayAttacks].map((attack) => [
    attack.id,
    attack,
  ]),
);

const facts = { executionTimeMs: 10, execution: undefined, started: true, idempotent: false };

function success(toolResult: JsonObject = {}): InvocationOutcome {
  return { kind: "success", toolResult, createdArtifacts: [], ...facts };
}

const timeout: InvocationOutcome = { kind: "timeout", ...facts };

function failure(...error: ConstructorParameters<typeof InvocationError>): InvocationOutcome {
  return { kind: "error", error: new InvocationError(...error), ...facts };
}

function verdict(id: string, outcome: InvocationOutcome, seen: Partial<Observation> = {}) {
  const attack = attacks.get(id) as Attack & Required<Pick<Attack, "judge">>;
  return attack.judge(observationOf(outcome, seen))!;
}

function observationOf(outcome: InvocationOutcome, seen: Partial<Observation>): Observation {
  return {
    outcome,
    statuses: [],
    artifacts: new Map(),
    askedNames: [],
    longestStallMs: 5,
    durationMs: 50,
    target: { token, limits: { diskBytes: 100 } } as Observation["target"],
    ...seen,
  };
}

describe("an attack by a name of the metadata service", () => {
  const target = { metadataName: "metadata.invalid" } as Observation["target"];
  const judged = (reached: boolean, ...refusals: readonly object[]) => {
    const outcome = {
      ...success({ reached, evidence: "ECONNRESET" }),
      execution: { start: "cold", network: { refusals } },
    } as unknown as InvocationOutcome;
    const observation = observationOf(outcome, { target });
    return judge(attacks.get("reach_metadata_by_name")!, observation, "cold").blocked;
  };
  const host = "metadata.invalid";

  test("is blocked when the worker refuses the address, not when nobody is at it", () => {
    expect(judged(false, { host, reason: "not-public" })).toBe(true);
    expect(judged(true, { host, reason: "not-public" })).toBe(false);
    expect(judged(false, { host, reason: "unreachable" })).toBe(false);
    expect(judged(false, { host, reason: "not-public" }, { host, reason: "unreachable" })).toBe(
      false,
    );
    expect(judged(false, { host: "other.invalid", reason: "not-public" })).toBe(false);
  });
});

describe("an attack on a gateway", () => {
  const calls = (tool: string) =>
    ({
      ...success({ reached: false, evidence: "NOT_ALLOWED" }),
      execution: { start: "cold", calls: { calls: [{ tool }], omittedCalls: 0 } },
    }) as unknown as InvocationOutcome;
  const id = "call_by_strange_names";

  test("is blocked when the program reached nothing, and the worker saw nothing", () => {
    expect(verdict(id, calls("called.listed"))).toEqual({ blocked: true, evidence: "NOT_ALLOWED" });
    const reached = verdict(id, success({ reached: true, evidence: "it says so" }));
    expect(reached).toEqual({ blocked: false, evidence: "it says so" });
  });

  test("is not blocked by what the program does not see", () => {
    expect(verdict(id, calls("\u202eexe")).evidence).toContain("a record steers terminals");
    expect(verdict(id, calls("a"), { longestStallMs: 5_000 }).blocked).toBe(false);
    const prototype = Object.prototype as { polluted?: boolean };
    prototype.polluted = true;
    try {
      expect(verdict(id, calls("a")).blocked).toBe(false);
    } finally {
      delete prototype.polluted;
    }
  });

  test("is over with the program that went on after its refusals, and broken by another end", () => {
    const limit = { limit: "toolCalls", bound: 100 } as const;
    expect(verdict("flood_calls", failure("EXECUTION_ERROR", "went on", { limit }))).toEqual({
      blocked: true,
      evidence: "went on",
    });
    expect(verdict("flood_calls", failure("EXECUTION_ERROR", "fell over"))).toBeUndefined();
  });
});

describe("an attack by names", () => {
  const answered = success({ reached: true, evidence: "answered with 64 bytes" });
  const judgeNames = (outcome: InvocationOutcome, askedNames: readonly string[] = []) =>
    judge(attacks.get("leak_by_names")!, observationOf(outcome, { askedNames }), "cold");
  const refusing = (host: string): InvocationOutcome => {
    const network = { refusals: [{ host, reason: "name-not-allowed" }] };
    return { ...answered, execution: { start: "cold", network } } as unknown as InvocationOutcome;
  };

  test("is blocked when the worker heard the names and looked for none", () => {
    expect(judgeNames(refusing(`${token}.invalid`), ["localhost"]).blocked).toBe(true);
    expect(judgeNames(refusing(`${token}.invalid`), [`${token}.localhost`])).toEqual({
      blocked: false,
      evidence: `the worker looked for the address of ${token}.localhost`,
    });
  });

  test("is not taken for blocked when the worker heard no name of it", () => {
    expect(judgeNames(refusing("localhost")).blocked).toBe(false);
    const raised = failure("EXECUTION_ERROR", "Tool raised TimeoutError");
    expect(judgeNames(raised).blocked).toBeUndefined();
  });
});

describe("an attack on a limit", () => {
  const limits = { diskBytes: 33_554_432, files: 1_000 };
  const target = { token, limits } as Observation["target"];
  const ended = (limit: "diskBytes" | "memoryBytes" | "files", peak: number | undefined = 40e6) =>
    failure("EXECUTION_ERROR", "Tool needs more", { limit: { limit, bound: 100, peak } });

  test("is blocked when it was refused more, by its own words", () => {
    const evidence = "held 90 bytes";
    expect(verdict("disk_in_files", success({ reached: false, evidence }))).toEqual({
      blocked: true,
      evidence,
    });
    expect(verdict("disk_in_files", success({ reached: true, evidence })).blocked).toBe(false);
  });

  test("is blocked when the call was ended for that limit, or for the one that stands in for it", () => {
    const verdictOn = (outcome: InvocationOutcome) => verdict("disk_in_files", outcome, { target });
    expect(verdictOn(ended("diskBytes"))).toEqual({
      blocked: true,
      evidence: "ended for disk: 40,000,000 bytes seen, bound 33,554,432",
    });
    expect(verdictOn(ended("files", 1_204.6))).toEqual({
      blocked: true,
      evidence: "ended for files: 1,205 seen, bound 1,000",
    });
    const unmeasured = { limit: { limit: "diskBytes", bound: 100, peak: undefined } } as const;
    expect(verdictOn(failure("EXECUTION_ERROR", "Tool needs more", unmeasured)).evidence).toBe(
      "ended for disk: bound 33,554,432 bytes",
    );
  });

  test.each<[string, InvocationOutcome]>([
    ["for another limit", ended("memoryBytes")],
    ["and nobody says for which limit", failure("SANDBOX_FAILED", "was ended by SIGKILL")],
    ["in an answer that is not its own", success({ status: "fine" })],
    ["by its time limit", timeout],
  ])("is not blocked when it ended %s", (_how, outcome) => {
    expect(verdict("disk_in_files", outcome).blocked).toBe(false);
  });
});

describe("an attack on the worker", () => {
  const noResult = failure("INTERNAL_ERROR", "The tool ended without a result");

  test("is blocked when it was answered by the right code, in time, and nothing was published", () => {
    expect(verdict("result_link", noResult)).toEqual({
      blocked: true,
      evidence: "INTERNAL_ERROR after 50 ms, at most 5 ms held up",
    });
  });

  test.each<[string, InvocationOutcome, Partial<Observation>]>([
    ["it was answered by another code", success(), {}],
    ["the answer was late", noResult, { durationMs: 30_001 }],
    ["the worker stood still", noResult, { longestStallMs: 1_001 }],
    ["an error has the secret", failure("INTERNAL_ERROR", `no: ${token}`), {}],
    ["a status has the secret", noResult, { statuses: [token] }],
    ["an artifact has the secret", noResult, { artifacts: new Map([["a", Buffer.from(token)]]) }],
    ["an artifact's name has the secret", noResult, { artifacts: new Map([[token, Buffer.of()]]) }],
    ["a status steers terminals", noResult, { statuses: ["\u001b[2J"] }],
    ["a status turns text around", noResult, { statuses: ["\u202egpj.exe"] }],
    ["a status is half a character", noResult, { statuses: ["\ud800"] }],
    ["a status is too long", noResult, { statuses: ["x".repeat(4_097)] }],
    ["an artifact's name breaks lines", noResult, { artifacts: new Map([["a\nb", Buffer.of()]]) }],
  ])("is not blocked when %s", (_what, outcome, seen) => {
    expect(verdict("result_link", outcome, seen).blocked).toBe(false);
  });

  test("is not blocked when its result has the secret", () => {
    expect(verdict("output_link", success()).blocked).toBe(true);
    expect(verdict("output_link", success({ text: token })).blocked).toBe(false);
  });
});

describe("the attacks on limits and on the worker", () => {
  test("are programs, and all that have an unprotected worker as baseline harm it in a way that is known", async () => {
    const names = await readdir(programs);
    const harms = await readFile(new URL("baseline/naive_worker.py", programs), "utf8");
    for (const { id, baseline } of attacks.values()) {
      expect(names).toContain(`${id}.py`);
      expect(harms.includes(`    "${id}": (`)).toBe(baseline === "naive-worker");
    }
  });
});
