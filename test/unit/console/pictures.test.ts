/** The geometry of the page: calls on a timeline, and samples in charts. */
import { describe, expect, test } from "vitest";
import { everyCall, filterCalls } from "../../../console/calls/filter.ts";
import { axisOf, phaseMs, segmentsOf } from "../../../console/calls/timeline.ts";
import { linePath, maxOf, niceMarks } from "../../../console/charts/scale.ts";
import {
  recordedCall,
  recordedSamples,
  runningCall,
} from "../../support/console/recorded-worker.ts";
import { fc, test as property } from "../../support/properties/property.ts";

const nowMs = 1_700_000_000_000;

describe("the timeline", () => {
  const ended = recordedCall(1, nowMs, {
    phases: [
      { step: "queue", startMs: 0, endMs: 25 },
      { step: "run", startMs: 25, endMs: 100 },
    ],
    durationMs: 100,
  });

  test("puts the phases of a call one after the other", () => {
    const axis = axisOf([ended, { ...ended, durationMs: 200 }], nowMs, false);
    expect(segmentsOf(ended, axis, nowMs)).toEqual([
      { step: "queue", start: 0, width: 0.125, durationMs: 25, isRunning: false },
      { step: "run", start: 0.125, width: 0.375, durationMs: 75, isRunning: false },
    ]);
  });

  test("puts calls at their times on a common axis", () => {
    const later = { ...ended, receivedAtMs: nowMs + 300 };
    const axis = axisOf([later, ended], nowMs + 400, true);
    expect(axis).toEqual({ startMs: nowMs, endMs: nowMs + 400, isCommon: true });
    expect(segmentsOf(later, axis, nowMs + 400).map(({ start }) => start)).toEqual([0.75, 0.8125]);
  });

  test("lets a phase grow that lasts, and is not as long as a call that hangs", () => {
    const running = runningCall(2, nowMs);
    const phase = running.phases.at(-1)!;
    expect(phaseMs(running, phase, nowMs + 1_009)).toBe(1_000);
    expect(phaseMs(running, phase, nowMs - 5)).toBe(0);
    const axis = axisOf([running, ended], nowMs + 60_000, false);
    expect(axis.endMs).toBe(100);
    const last = segmentsOf(running, axis, nowMs + 60_000).at(-1);
    expect(last).toMatchObject({ width: 1, isRunning: true });
  });

  test("has an axis without calls", () => {
    expect(axisOf([], nowMs, false)).toEqual({ startMs: 0, endMs: 1, isCommon: false });
  });

  test("shows the calls that pass the filter", () => {
    const calls = [
      runningCall(3, nowMs, { isOwn: true }),
      recordedCall(2, nowMs, { outcome: "SANDBOX_TIMEOUT", tool: "other" }),
      recordedCall(1, nowMs),
    ];
    const numbers = (change: Partial<typeof everyCall>) =>
      filterCalls(calls, { ...everyCall, ...change }).map(({ number }) => number);
    expect(numbers({})).toEqual([3, 2, 1]);
    expect(numbers({ outcome: "running" })).toEqual([3]);
    expect(numbers({ outcome: "failed" })).toEqual([2]);
    expect(numbers({ outcome: "ok" })).toEqual([1]);
    expect(numbers({ tool: "other" })).toEqual([2]);
    expect(numbers({ isOwnOnly: true })).toEqual([3]);
  });
});

describe("a chart", () => {
  test.each([
    [7, 1, [0, 5, 10]],
    [4, 1, [0, 2, 4]],
    [0.3, 1, [0, 0.1, 0.2, 0.3]],
    [46 * 1024, 1024, [0, 20 * 1024, 40 * 1024, 60 * 1024]],
    [0, 1, [0, 1]],
  ])("to %d has round marks", (max, unit, marks) => {
    expect(niceMarks(max, unit)).toEqual(marks);
  });

  property.prop([fc.double({ min: 1e-6, max: 1e12, noNaN: true })])("has its top inside", (max) => {
    const marks = niceMarks(max);
    expect(marks.at(-1)).toBeGreaterThanOrEqual(max * 0.998);
    expect(marks.length).toBeLessThanOrEqual(5);
  });

  test("draws lines with gaps where there is no value", () => {
    const [sample] = recordedSamples(nowMs);
    const samples = [10, null, 0, 5].map((p50Ms, at) => ({ ...sample!, atMs: at * 10, p50Ms }));
    const series = { label: "p50", valueOf: (one: { p50Ms: number | null }) => one.p50Ms };
    const frame = { left: 0, top: 0, width: 30, height: 100 };
    expect(linePath(samples, series, 10, frame)).toBe("M0.0 0.0h0M20.0 100.0h0L30.0 50.0");
    expect(maxOf(samples, [series])).toBe(10);
  });
});
