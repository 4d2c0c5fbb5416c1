/**
 * Budgets of programs.
 */
import { describe, expect, vi } from "vitest";
import { CallBudget } from "../../../worker/gateway/budget.ts";
import type { GatewayError } from "../../../worker/gateway/gateway.ts";
import { narrowLimits } from "../../../worker/gateway/limits.ts";
import {
  type GatewayLimits,
  defaultGatewayLimits,
} from "../../../worker/protocol/tool-calls/limits.ts";
import { fc, test } from "../../support/properties/property.ts";

const never = new AbortController().signal;

const budgetOf = (limits: Partial<GatewayLimits>, options = {}): CallBudget =>
  new CallBudget({ ...defaultGatewayLimits, ...limits }, options);

/** The data of the error that a function throws. */
function refusal(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    expect(error).toMatchObject({ code: "LIMIT_REACHED" });
    return (error as GatewayError).data;
  }
  return undefined;
}

/** A clock that moves by its sleeps only. */
function steppedClock() {
  let nowMs = 0;
  const slept: number[] = [];
  return {
    slept,
    forward: (ms: number) => (nowMs += ms),
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: async (ms: number) => void slept.push(ms),
    },
  };
}

describe("calls", () => {
  const step = fc.record({ size: fc.integer({ min: 1, max: 5 }), started: fc.nat({ max: 5 }) });
  test.prop([fc.nat({ max: 30 }), fc.array(step)])(
    "never start beyond the bound, and all of it can be used",
    (maxToolCalls, steps) => {
      const budget = budgetOf({ maxToolCalls });
      let used = 0;
      for (const { size, started } of steps) {
        const fits = used + size <= maxToolCalls;
        const data = refusal(() => {
          using reserved = budget.reserveChain(size);
          for (let count = 0; count < Math.min(size, started); count++) reserved.start();
          used += Math.min(size, started);
        });
        expect(data === undefined).toBe(fits);
        if (!fits) used = Math.min(used + 1, maxToolCalls);
      }
      expect(used).toBeLessThanOrEqual(maxToolCalls);
    },
  );

  test("are reserved before they start", () => {
    const budget = budgetOf({ maxToolCalls: 2 });
    using reserved = budget.reserveChain(2);
    expect(refusal(() => budget.reserveCall())).toEqual({ limit: "max_tool_calls", bound: 2 });
    reserved.start();
    reserved.start();
    expect(() => reserved.start()).toThrow(RangeError);
  });

  test.each([
    [0, 3, undefined],
    [2, 3, undefined],
    [3, 3, { limit: "max_depth", bound: 3 }],
    [4, 9, undefined],
    [5, 9, { limit: "max_depth", bound: 5 }],
    [0, 0, { limit: "max_depth", bound: 0 }],
  ])("of a call of depth %d under a bound of %d", (depth, maxDepth, expected) => {
    const budget = budgetOf({ maxDepth }, { depth });
    expect(budget.callDepth).toBe(depth + 1);
    expect(refusal(() => budget.reserveCall())).toEqual(expected);
  });
});

test("limits can be narrowed, and not widened", () => {
  const limits = narrowLimits(defaultGatewayLimits, { maxToolCalls: 5, maxDepth: 5 });
  expect(limits).toEqual({ ...defaultGatewayLimits, maxToolCalls: 5 });
});

describe("operations", () => {
  test("run at once up to a second's, then in their time, and are refused a second later", async () => {
    const { clock, slept, forward } = steppedClock();
    const budget = budgetOf({ maxOperationsPerSecond: 10 }, { clock });
    for (let count = 0; count < 10; count++) await budget.enter(never);
    expect(slept).toEqual([]);
    for (let count = 0; count < 10; count++) await budget.enter(never);
    expect(slept).toEqual([100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]);
    await expect(budget.enter(never)).rejects.toMatchObject({
      ...{ code: "LIMIT_REACHED", retryable: true },
      data: { limit: "max_operations_per_second", bound: 10 },
    });
    forward(2_000);
    for (let count = 0; count < 10; count++) await budget.enter(never);
    expect(slept).toHaveLength(10);
  });

  test("that wait can be aborted", async () => {
    const budget = budgetOf({ maxOperationsPerSecond: 1 });
    await budget.enter(never);
    const controller = new AbortController();
    const waiting = budget.enter(controller.signal);
    const reason = new Error("not wanted");
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe("bytes of artifacts", () => {
  test("are spent before they come, and given back when they do not", () => {
    const budget = budgetOf({ maxArtifactBytes: 100 });
    const settle = budget.loadBytes(60);
    const expected = { limit: "max_artifact_bytes", bound: 100 };
    expect(refusal(() => budget.loadBytes(60))).toEqual(expected);
    settle(40);
    budget.loadBytes(60)(60);
    expect(refusal(() => budget.loadBytes(1))).toEqual(expected);
  });
});

describe("the hundredth refusal", () => {
  test("ends the program", async () => {
    const budget = budgetOf({ maxLookups: 0 });
    const onEnd = vi.fn();
    budget.ended.addEventListener("abort", onEnd);
    for (let count = 1; count < 100; count++) refusal(() => budget.lookUp());
    await budget.enter(never);
    expect(onEnd).not.toHaveBeenCalled();
    expect(refusal(() => budget.lookUp())).toEqual({ limit: "max_lookups", bound: 0 });
    expect(onEnd).toHaveBeenCalledOnce();
    expect(budget.ended.reason).toMatchObject({
      ...{ code: "LIMIT_REACHED", data: { limit: "tool_calls", bound: 100 } },
    });
    await expect(budget.enter(never)).rejects.toBe(budget.ended.reason);
  });
});
