/**
 * Processor time of processes that come and go between looks.
 */
import { fc, test as propertyTest } from "@fast-check/vitest";
import { describe, expect, test } from "vitest";
import { CpuTotal } from "../../../../worker/sandbox/accounting/cpu-time.ts";
import type { SeenProcess } from "../../../../worker/sandbox/accounting/process-tree.ts";

function seen(pid: number, ownMs: number, childrenMs = 0, startTicks = 1): SeenProcess {
  const memory = { privateBytes: 0, tableBytes: 0, sharedBytes: 0 };
  const state = { isSuspended: false, isStopped: false };
  const rest = { parentPid: 0, ...state, place: `/proc/${pid}`, threads: 1, ...memory };
  return { pid, startTicks, ownMs, childrenMs, ...rest };
}

/** The total after some looks. */
function totalOf(...looks: readonly (readonly SeenProcess[])[]): number {
  const total = new CpuTotal();
  for (const look of looks) total.add(look);
  return total.totalMs;
}

describe("the processor time of a sandbox", () => {
  test("is that of all its processes, and of their children that have ended", () => {
    expect(totalOf([seen(1, 10, 200), seen(2, 30), seen(3, 40, 5)])).toBe(285);
  });

  test("counts a process that was waited for once, with what it used since it was seen", () => {
    expect(totalOf([seen(1, 0), seen(2, 50)], [seen(1, 0, 70)])).toBe(70);
  });

  test("keeps what was seen of a process that nobody waited for", () => {
    expect(totalOf([seen(1, 0), seen(2, 50)], [seen(1, 0)], [seen(1, 1)])).toBe(51);
  });

  test("counts a process that ended with its parent once", () => {
    const looks = [[seen(1, 0), seen(2, 50), seen(3, 20)], [seen(1, 0, 75)]];
    expect(totalOf(...looks)).toBe(75);
  });

  test("knows a process by more than its number", () => {
    expect(totalOf([seen(1, 0), seen(2, 50)], [seen(1, 0), seen(2, 7, 0, 2)])).toBe(57);
  });

  test("stays what it is when nothing is left to look at", () => {
    expect(totalOf([seen(1, 0), seen(2, 50)], [], [])).toBe(50);
    expect(totalOf([])).toBe(0);
  });

  propertyTest.prop([fc.array(fc.tuple(fc.nat(1_000), fc.boolean()), { maxLength: 20 })])(
    "is exact for children that come one after the other and are seen at their end",
    (children) => {
      const looks: SeenProcess[][] = [];
      let waitedFor = 0;
      for (const [index, [ms, isWaitedFor]] of children.entries()) {
        looks.push([seen(1, 0, waitedFor), seen(10 + index, ms)]);
        if (isWaitedFor) waitedFor += ms;
        looks.push([seen(1, 0, waitedFor)]);
      }
      expect(totalOf(...looks)).toBe(children.reduce((sum, [ms]) => sum + ms, 0));
    },
  );

  propertyTest.prop([fc.array(fc.array(fc.tuple(fc.nat(5), fc.nat(100), fc.nat(100))))])(
    "never goes back, whatever looks find",
    (looks) => {
      const total = new CpuTotal();
      let last = 0;
      for (const look of looks) {
        total.add(look.map(([pid, ownMs, childrenMs]) => seen(pid, ownMs, childrenMs)));
        expect(total.totalMs).toBeGreaterThanOrEqual(last);
        last = total.totalMs;
      }
    },
  );
});
