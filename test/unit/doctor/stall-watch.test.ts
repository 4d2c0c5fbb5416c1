/**
 * Stalls of the event loop, as the doctor measures them.
 */
import { expect, test } from "vitest";
import { StallWatch } from "../../../worker/doctor/attacks/stall-watch.ts";

/**
 * Keeps the thread busy for so many milliseconds of processor time, however busy the machine is.
 */
function work(cpuMs: number): void {
  const start = process.threadCpuUsage();
  for (;;) {
    const { user, system } = process.threadCpuUsage(start);
    if ((user + system) / 1_000 >= cpuMs) return;
  }
}

test("the longest stall is kept when shorter ones follow", () => {
  using watch = new StallWatch();
  work(300);
  const longestMs = watch.longestMs;
  expect(longestMs).toBeGreaterThan(250);
  work(20);
  expect(watch.longestMs).toBeGreaterThanOrEqual(longestMs);
});
