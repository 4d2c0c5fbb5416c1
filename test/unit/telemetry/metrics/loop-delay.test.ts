/**
 * The delay of the event loop.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { LoopDelay, sampleMs } from "../../../../worker/telemetry/metrics/loop-delay.ts";

test("a stall counts for each sample that it kept from happening", async () => {
  using delay = new LoopDelay();
  const stalledMs = 4 * sampleMs;
  const endMs = performance.now() + stalledMs;
  while (performance.now() < endMs);
  await vi.waitFor(() => expect(delay.seconds.sum).toBeGreaterThan(0));
  const { counts, bounds } = delay.seconds;
  const above = counts.slice(bounds.indexOf(0.1) + 1);
  // Due after 250 ms, and then three times: late by 750, 500 and 250 ms at least.
  expect(above.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(3);
  expect(delay.seconds.sum).toBeGreaterThan(1.4);
});

test("it observes no more once it is disposed", () => {
  const delay = newDelay();
  const observed = (): number => delay.seconds.counts.reduce((sum, count) => sum + count);
  vi.advanceTimersByTime(2 * sampleMs);
  expect(observed()).toBe(2);
  delay[Symbol.dispose]();
  vi.advanceTimersByTime(10 * sampleMs);
  expect(observed()).toBe(2);
});

test("a stall of days counts as one of ten minutes", () => {
  using delay = newDelay();
  const laterMs = performance.now() + 3 * 24 * 60 * 60_000;
  vi.spyOn(performance, "now").mockReturnValue(laterMs);
  vi.advanceTimersByTime(sampleMs);
  const samples = delay.seconds.counts.reduce((sum, count) => sum + count);
  expect(samples).toBe(600_000 / sampleMs);
});

/** On a clock that the test moves. */
function newDelay(): LoopDelay {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  return new LoopDelay();
}
