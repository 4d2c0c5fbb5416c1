/**
 * Stalls of the event loop, as the doctor measures them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { StallWatch } from "../../../worker/doctor/stall-watch.ts";

/** Keeps the thread busy for so many milliseconds of processor time, however busy the machine is. */
function work(cpuMs: number): void {
  const start = process.threadCpuUsage();
  for (;;) {
    const { user, system } = process.threadCpuUsage(start);
    if ((user + system) / 1_000 >= cpuMs) return;
  }
}

test("the longest stall is that in which the thread did not come back to its loop", async () => {
  using watch = new StallWatch();
  await sleep(20);
  work(300);
  await sleep(20);
  expect(watch.longestMs).toBeGreaterThan(250);
});

test("a stall that has not ended yet counts", () => {
  using watch = new StallWatch();
  work(300);
  expect(watch.longestMs).toBeGreaterThan(250);
});
