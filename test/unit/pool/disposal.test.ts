/**
 * When ended calls are disposed: at once, or after a row of calls by tools.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CallRow, rowGapMs } from "../../../worker/pool/call-row.ts";
import { Disposal, maxHeld, maxHeldMs } from "../../../worker/pool/disposal.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { HandClock } from "../broker/hand-clock.ts";

/** Calls that end one after the other; some wait meanwhile for calls of their own. */
function setUp(waiting = 1) {
  const clock = new HandClock();
  const suspended = { calls: waiting };
  const row = new CallRow({ suspendedCalls: () => suspended.calls, clock });
  const disposal = new Disposal({ log: createLogger("silent", 1), clock, row });
  const disposed: number[] = [];
  const rest = async (): Promise<void> => {
    for (let turn = 0; turn < 3 * maxHeld; turn++) await nextTurn();
  };
  return {
    suspended,
    disposal,
    disposed,
    end: async (call: number): Promise<void> => {
      row.note();
      disposal.begin({ [Symbol.asyncDispose]: async () => void disposed.push(call) });
      await rest();
    },
    pass: async (ms: number): Promise<void> => {
      clock.advance(ms);
      await rest();
    },
  };
}

test("a call is disposed at once where none waits for calls of its own", async () => {
  const { disposed, end } = setUp(0);
  await end(1);
  expect(disposed).toEqual([1]);
});

test("calls by a tool are disposed when no other has followed for a while", async () => {
  const { suspended, disposed, end, pass } = setUp();
  for (const call of [1, 2, 3]) {
    await end(call);
    await pass(rowGapMs - 1);
  }
  expect(disposed).toEqual([]);
  // What the tool does between its calls does not count.
  suspended.calls = 0;
  await pass(1);
  expect(disposed).toEqual([1, 2, 3]);
});

test("a call that ends during a row waits with it, whoever made it", async () => {
  const { suspended, disposed, end, pass } = setUp();
  await end(1);
  suspended.calls = 0;
  await end(2);
  expect(disposed).toEqual([]);
  await pass(rowGapMs);
  expect(disposed).toEqual([1, 2]);
});

test("of a row without a gap the oldest are disposed after a while", async () => {
  const { disposed, end, pass } = setUp();
  const stepMs = rowGapMs / 2;
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

test("of a row without a pause the oldest is disposed when more than enough wait", async () => {
  const { disposed, end } = setUp();
  for (let call = 0; call < maxHeld; call++) await end(call);
  expect(disposed).toEqual([]);
  await end(maxHeld);
  expect(disposed).toEqual([0]);
  await end(maxHeld + 1);
  expect(disposed).toEqual([0, 1]);
});

test("at the end everything is disposed, and nothing waits any more", async () => {
  const { disposal, disposed, end } = setUp();
  await end(1);
  await end(2);
  await disposal.settled();
  expect(disposed).toEqual([1, 2]);
  await end(3);
  expect(disposed).toEqual([1, 2, 3]);
});
