/**
 * What an answer says of the sandbox that ran.
 */
import { describe, expect, test } from "vitest";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { ExecutionReport } from "../../../worker/protocol/execution.ts";
import type { Answer } from "../../../worker/protocol/invocation.ts";
import {
  type LimitName,
  limitFacts,
  limitNames,
} from "../../../worker/protocol/resource-limits.ts";
import { encodeResponse } from "../../../worker/protocol/messages/response.ts";

function each<T>(value: (name: LimitName) => T): Record<LimitName, T> {
  return Object.fromEntries(limitNames.map((name) => [name, value(name)])) as Record<LimitName, T>;
}

const execution: ExecutionReport = {
  profile: "standard",
  backend: "bubblewrap",
  start: "template",
  limits: each((name) => limitNames.indexOf(name) + 1),
  enforcedBy: each((name) => (name === "memoryBytes" ? "guard" : "kernel")),
  timeLimitMs: 30_500,
  unenforced: ["fresh-proc"],
  usage: {
    wallMs: 48.6,
    cpuMs: 31.2,
    peakMemoryBytes: 11_534_336,
    peakProcesses: undefined,
    outputBytes: 13,
  },
};

const wire = {
  profile: "standard",
  backend: "bubblewrap",
  start: "template",
  limits_enforced: {
    ...Object.fromEntries(
      limitNames.map((name, index) => [
        limitFacts[name].word,
        {
          bound: index + 1,
          unit: limitFacts[name].unit,
          by: name === "memoryBytes" ? "guard" : "kernel",
        },
      ]),
    ),
    wall_time: { bound: 30.5, unit: "seconds", by: "guard" },
  },
  unenforced: ["fresh-proc"],
  usage: { wall_ms: 49, cpu_ms: 31, peak_memory_bytes: 11_534_336, output_bytes: 13 },
};

function sent(answer: Answer): Record<string, unknown> {
  return JSON.parse(Buffer.from(encodeResponse("1", answer)).toString()) as Record<string, unknown>;
}

describe("the execution is told", () => {
  const executionTimeMs = 50;

  test("in the result of a call that succeeded, without what nobody measured", () => {
    const answer = { kind: "success", toolResult: {}, createdArtifacts: [] } as const;
    const { result } = sent({ ...answer, executionTimeMs, execution });
    expect(result).toMatchObject({ tool_result: {} });
    expect((result as Record<string, unknown>)["execution"]).toEqual(wire);
  });

  test("in the result of a call that ran out of time", () => {
    const { result } = sent({ kind: "timeout", executionTimeMs, execution });
    expect(result).toMatchObject({ timed_out: true, execution: wire });
  });

  test("in the data of an error, with the limit that ended the call", () => {
    const limit = { limit: "memoryBytes", bound: 1, peak: 2 } as const;
    const error = new InvocationError("EXECUTION_ERROR", "too much", { limit });
    expect(sent({ kind: "error", error, executionTimeMs, execution })["error"]).toEqual({
      code: "EXECUTION_ERROR",
      message: "too much",
      data: { limit: "memory", bound: 1, peak: 2, unit: "bytes", execution: wire },
    });
  });

  test("also when the answer is too large to be sent", () => {
    const toolResult = { text: "x".repeat(10_000_000) };
    const answer = { kind: "success", toolResult, createdArtifacts: [] } as const;
    expect(sent({ ...answer, executionTimeMs, execution })["error"]).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      data: { execution: wire },
    });
  });

  test("by no member where no sandbox ran", () => {
    const error = new InvocationError("INVALID_REQUEST", "no");
    expect(sent({ kind: "error", error, executionTimeMs })["error"]).toEqual({
      code: "INVALID_REQUEST",
      message: "no",
    });
    const { result } = sent({ kind: "timeout", executionTimeMs });
    expect(result).not.toHaveProperty("execution");
  });
});

describe("the table of limits", () => {
  test("has a word and a field of its own for each", () => {
    const facts = limitNames.map((name) => limitFacts[name]);
    expect(new Set(facts.map(({ word }) => word)).size).toBe(facts.length);
    expect(new Set(facts.map(({ field }) => field)).size).toBe(facts.length);
    for (const { min, max } of facts) expect(min).toBeLessThan(max);
  });
});
