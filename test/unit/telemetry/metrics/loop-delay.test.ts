/**
 * The delay of the event loop.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { LoopDelay, lookMs } from "../../../../worker/telemetry/metrics/loop-delay.ts";

test("a stall counts for each look that it kept from happening", async () => {
  using delay = new LoopDelay();
  const stalledMs = 4 * lookMs;
  const endMs = performance.now() + stalledMs;
  while (performance.now() < endMs);
  await vi.waitFor(() => expect(delay.seconds.sum).toBeGreaterThan(0));
  const { counts, bounds } = delay.seconds;
  const above = counts.slice(bounds.indexOf(0.1) + 1);
  // Due after 250 ms, and then three times: late by 750, 500 and 250 ms at least.
  expect(above.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(3);
  expect(delay.seconds.sum).toBeGreaterThan(1.4);
});

test("it observes no more once it is disposed", async () => {
  const delay = new LoopDelay();
  delay[Symbol.dispose]();
  await sleep(lookMs + 100);
  expect(delay.seconds.counts.every((count) => count === 0)).toBe(true);
});
