/**
 * Turns of those who flood.
 */
import { expect, test } from "vitest";
import { ReadThrottle } from "../../../worker/sandbox/work/read-throttle.ts";

const pause = { leastMs: 12, betweenMs: 4 };

test("one alone waits the least pause each time", () => {
  const gate = new ReadThrottle(pause);
  expect([0, 12, 24].map((nowMs) => gate.pauseMs(nowMs))).toEqual([12, 12, 12]);
});

test("many have their turns one after the other", () => {
  const gate = new ReadThrottle(pause);
  expect([0, 0, 0, 1, 1].map((nowMs) => gate.pauseMs(nowMs))).toEqual([12, 16, 20, 23, 27]);
});

test("a turn that is over is forgotten", () => {
  const gate = new ReadThrottle(pause);
  gate.pauseMs(0);
  gate.pauseMs(0);
  expect(gate.pauseMs(1_000)).toBe(12);
});
