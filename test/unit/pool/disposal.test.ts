/**
 * When ended calls are disposed: at once, or after a series of calls by tools.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CallSeries, seriesGapMs } from "../../../worker/pool/call-series.ts";
import { Disposal, maxHeld, maxHeldMs } from "../../../worker/pool/disposal.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { HandClock } from "../broker/hand-clock.ts";

/** Calls of a tool that end one after the other. */
function setUp() {
  const clock = new HandClock();
  const series = new CallSeries(clock);
  const disposal = new Disposal({ log: createLogger("silent", 1), clock, series });
  const disposed: number[] = [];
  const rest = async (): Promise<void> => {
    for (let turn = 0; turn < 3 * maxHeld; turn++) await nextTurn();
  };
  const resource = (call: number) => ({
    [Symbol.asyncDispose]: async () => void disposed.push(call),
  });
  return {
    clock,
    series,
    disposal,
    disposed,
    resource,
    end: async (call: number): Promise<void> => {
      series.note();
      disposal.beginAfterSeries(resource(call));
      await rest();
    },
    rest,
    pass: async (ms: number): Promise<void> => {
      clock.advance(ms);
      await rest();
    },
  };
}

test("an ended call is disposed at once where there is no series", async () => {
  const { disposal, disposed, resource, rest } = setUp();
  disposal.beginAfterSeries(resource(1));
  await rest();
  expect(disposed).toEqual([1]);
});

test("calls of a series are disposed when no other has followed for a while", async () => {
  const { disposed, end, pass } = setUp();
  for (const call of [1, 2, 3]) {
    await end(call);
    await pass(seriesGapMs - 1);
  }
  expect(disposed).toEqual([]);
  await pass(1);
  expect(disposed).toEqual([1, 2, 3]);
});

test("after a series, one disposal starts in a turn", async () => {
  const { clock, disposed, end } = setUp();
  for (const call of [1, 2, 3]) await end(call);
  clock.advance(seriesGapMs);
  const counts: number[] = [];
  while (disposed.length < 3) {
    await nextTurn();
    if (disposed.length !== counts.at(-1)) counts.push(disposed.length);
  }
  expect(counts.filter((count) => count > 0)).toEqual([1, 2, 3]);
});

test("what still runs does not wait for a series", async () => {
  const { series, disposal, disposed, resource, rest } = setUp();
  series.note();
  disposal.begin(resource(1));
  await rest();
  expect(disposed).toEqual([1]);
});

test("of a series without a gap the oldest are disposed after a while", async () => {
  const { disposed, end, pass } = setUp();
  const stepMs = seriesGapMs / 2;
  const calls = maxHeldMs / stepMs;
  for (let call = 0; call < calls; call++) {
    await end(call);
    expect(disposed).toEqual([]);
    await pass(stepMs);
  }
  await end(calls);
  await pass(stepMs);
  expect(disposed[0]).toBe(0);
  expect(disposed.length).toBeLessThan(calls);
});

test("of a series without a pause the oldest is disposed when more than enough wait", async () => {
  const { disposed, end } = setUp();
  for (let call = 0; call < maxHeld; call++) await end(call);
  expect(disposed).toEqual([]);
  await end(maxHeld);
  expect(disposed).toEqual([0]);
  await end(maxHeld + 1);
  expect(disposed).toEqual([0, 1]);
});

test("at the end everything is disposed, and nothing waits any more", async () => {
  const { clock, disposal, disposed, end } = setUp();
  await end(1);
  await end(2);
  await disposal.settled();
  expect(disposed).toEqual([1, 2]);
  expect(clock.sleeping).toBe(0);
  await end(3);
  expect(disposed).toEqual([1, 2, 3]);
});
