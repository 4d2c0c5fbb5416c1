/**
 * The times of a call.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { callTimes, remainingLimitMs, savingLimitMs } from "../../../worker/invocation/limits.ts";

const sentAtMs = 1_000_000;

function times(
  manifest: number | undefined,
  request: number | undefined,
  defaultSeconds = 300,
  maxSeconds = Infinity,
) {
  const { limitMs, deadlineMs } = callTimes(
    { timeoutSeconds: manifest },
    { timeoutSeconds: request, sentAtMs },
    { defaultSeconds, maxSeconds },
  );
  return { limitSeconds: limitMs / 1000, patienceSeconds: (deadlineMs - sentAtMs) / 1000 };
}

describe("a tool's time limit", { tags: "promise-S21" }, () => {
  test.each([
    { manifest: undefined, request: undefined, limit: 300, patience: 310 },
    { manifest: 60, request: undefined, limit: 60, patience: 70 },
    { manifest: 600, request: undefined, limit: 600, patience: 610 },
    { manifest: undefined, request: 30, limit: 30, patience: 40 },
    { manifest: undefined, request: 900, limit: 900, patience: 910 },
    { manifest: 60, request: 30, limit: 30, patience: 40 },
    { manifest: 30, request: 60, limit: 30, patience: 70 },
    { manifest: 60, request: 60, limit: 60, patience: 70 },
  ])(
    "is $limit s with $manifest in the manifest and $request in the request, and the agent waits $patience s",
    ({ manifest, request, limit, patience }) => {
      expect(times(manifest, request)).toEqual({ limitSeconds: limit, patienceSeconds: patience });
    },
  );

  test("is the worker's default only when nobody says anything", () => {
    expect(times(undefined, undefined, 5)).toEqual({ limitSeconds: 5, patienceSeconds: 15 });
    expect(times(10, undefined, 5).limitSeconds).toBe(10);
    expect(times(undefined, 10, 5).limitSeconds).toBe(10);
  });

  test("is never above the bound, and the agent waits for what it asked for", () => {
    expect(times(undefined, 3_600, 300, 840)).toEqual({
      limitSeconds: 840,
      patienceSeconds: 3_610,
    });
    expect(times(undefined, undefined, 900, 840).limitSeconds).toBe(840);
    expect(times(60, 3_600, 300, 840).limitSeconds).toBe(60);
  });

  const seconds = fc.option(fc.double({ min: 0.001, max: 86_400, noNaN: true }), {
    nil: undefined,
  });

  propertyTest.prop([
    seconds,
    seconds,
    fc.integer({ min: 1, max: 86_400 }),
    fc.double({ min: 1, max: 2e12, noNaN: true }),
  ])(
    "never exceeds what manifest or request say, and its times are such as a timer takes",
    (manifest, request, defaultSeconds, sentAt) => {
      const { limitMs, deadlineMs } = callTimes(
        { timeoutSeconds: manifest },
        { timeoutSeconds: request, sentAtMs: sentAt },
        { defaultSeconds, maxSeconds: Infinity },
      );
      expect(limitMs).toBeLessThanOrEqual((manifest ?? Infinity) * 1000);
      expect(limitMs).toBeLessThanOrEqual((request ?? Infinity) * 1000);
      for (const ms of [limitMs, deadlineMs]) expect(Number.isInteger(ms)).toBe(true);
      const waitMs = deadlineMs - Math.floor(sentAt);
      expect(() => AbortSignal.timeout(waitMs)).not.toThrow();
    },
  );
});

describe("what is left of the limit", () => {
  const { limitMs, deadlineMs } = callTimes(
    { timeoutSeconds: undefined },
    { timeoutSeconds: 30, sentAtMs },
    { defaultSeconds: 300, maxSeconds: Infinity },
  );
  const leftAfter = (seconds: number) =>
    remainingLimitMs({ limitMs, deadlineMs }, sentAtMs + seconds * 1000);

  test("is all of it for a call that starts within 5 seconds", () => {
    expect(leftAfter(0)).toBe(30_000);
    expect(leftAfter(5)).toBe(30_000);
  });

  test("is what lets the answer out 5 seconds before the agent gives up, for a later one", () => {
    expect(leftAfter(6)).toBe(29_000);
    expect(leftAfter(34)).toBe(1_000);
  });

  test("is nothing for a call whose agent will not hear the answer", () => {
    expect(leftAfter(35)).toBe(0);
    expect(leftAfter(100)).toBeLessThan(0);
  });
});

describe("the time for saving outputs", () => {
  const call = { limitMs: 30_000, deadlineMs: 100_000 };

  test("ends five seconds before the agent stops waiting, whatever the tool's limit is", () => {
    expect(savingLimitMs(call, 20_000)).toBe(75_000);
    expect(savingLimitMs(call, 89_999)).toBe(5_001);
  });

  test("is five seconds for a tool that ended later", () => {
    expect(savingLimitMs(call, 95_000)).toBe(5_000);
    expect(savingLimitMs(call, 200_000)).toBe(5_000);
  });
});
