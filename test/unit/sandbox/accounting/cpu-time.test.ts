/**
 * CPU time of processes that come and go between samples.
 */
import { fc, test as propertyTest } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { CpuTime } from "../../../../worker/sandbox/accounting/cpu-time.ts";
import type { ProcessSample } from "../../../../worker/sandbox/accounting/process-tree.ts";

function sampled(pid: number, ownMs: number, childrenMs = 0, startTicks = 1): ProcessSample {
  const memory = { privateBytes: 0, tableBytes: 0, sharedBytes: 0 };
  const state = { isSuspended: false, isStopped: false };
  const rest = { parentPid: 0, ...state, place: `/proc/${pid}`, threads: 1, ...memory };
  return { pid, startTicks, ownMs, childrenMs, ...rest };
}

/** The total after some samples. */
function totalOf(...samples: readonly (readonly ProcessSample[])[]): number {
  const total = new CpuTime();
  for (const sample of samples) total.add(sample);
  return total.totalMs;
}

describe("the CPU time of a sandbox", () => {
  test("is that of all its processes, and of their children that have ended", () => {
    expect(totalOf([sampled(1, 10, 200), sampled(2, 30), sampled(3, 40, 5)])).toBe(285);
  });

  test("counts a reaped process once, with its time since the last sample", () => {
    expect(totalOf([sampled(1, 0), sampled(2, 50)], [sampled(1, 0, 70)])).toBe(70);
  });

  test("keeps the last sample of an unreaped process", () => {
    expect(totalOf([sampled(1, 0), sampled(2, 50)], [sampled(1, 0)], [sampled(1, 1)])).toBe(51);
  });

  test("counts a process that ended with its parent once", () => {
    const samples = [[sampled(1, 0), sampled(2, 50), sampled(3, 20)], [sampled(1, 0, 75)]];
    expect(totalOf(...samples)).toBe(75);
  });

  test("knows a process by more than its number", () => {
    expect(totalOf([sampled(1, 0), sampled(2, 50)], [sampled(1, 0), sampled(2, 7, 0, 2)])).toBe(57);
  });

  test("stays when no process is left", () => {
    expect(totalOf([sampled(1, 0), sampled(2, 50)], [], [])).toBe(50);
    expect(totalOf([])).toBe(0);
  });

  propertyTest.prop([fc.array(fc.tuple(fc.nat(1_000), fc.boolean()), { maxLength: 20 })])(
    "is exact for children that come one after the other and are seen at their end",
    (children) => {
      const samples: ProcessSample[][] = [];
      let waitedFor = 0;
      for (const [index, [ms, isWaitedFor]] of children.entries()) {
        samples.push([sampled(1, 0, waitedFor), sampled(10 + index, ms)]);
        if (isWaitedFor) waitedFor += ms;
        samples.push([sampled(1, 0, waitedFor)]);
      }
      expect(totalOf(...samples)).toBe(children.reduce((sum, [ms]) => sum + ms, 0));
    },
  );

  propertyTest.prop([fc.array(fc.array(fc.tuple(fc.nat(5), fc.nat(100), fc.nat(100))))])(
    "never goes back, whatever samples find",
    (samples) => {
      const total = new CpuTime();
      let last = 0;
      for (const sample of samples) {
        total.add(sample.map(([pid, ownMs, childrenMs]) => sampled(pid, ownMs, childrenMs)));
        expect(total.totalMs).toBeGreaterThanOrEqual(last);
        last = total.totalMs;
      }
    },
  );
});
