/**
 * When a monitor first samples a sandbox.
 */
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import {
  ResourceMonitor,
  firstSampleMs,
  idleSampleMs,
  sampleMs,
} from "../../../../worker/sandbox/accounting/resource-monitor.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
});

function newSandbox() {
  return { isOver: false, isUrgent: false, sample: vi.fn<() => void>() };
}

test("is after a pause where it is to be later, and then as often as usual", () => {
  const monitor = new ResourceMonitor();
  const sandbox = newSandbox();
  monitor.watchLater(sandbox);
  vi.advanceTimersByTime(firstSampleMs - 1);
  expect(sandbox.sample).not.toHaveBeenCalled();
  vi.advanceTimersByTime(3 * sampleMs);
  const { length } = sandbox.sample.mock.calls;
  expect(length).toBeGreaterThan(0);
  vi.advanceTimersByTime(10 * sampleMs);
  expect(sandbox.sample.mock.calls.length).toBeGreaterThan(length + 3);
});

test("is before that where its file system has grown too much", () => {
  const monitor = new ResourceMonitor();
  const sandbox = { ...newSandbox(), isUrgent: true };
  monitor.watchLater(sandbox);
  vi.advanceTimersByTime(3 * sampleMs);
  expect(sandbox.sample).toHaveBeenCalled();
});

test("is as soon as usual where it is not to be later any more", () => {
  const monitor = new ResourceMonitor();
  const sandbox = newSandbox();
  monitor.watchLater(sandbox);
  monitor.watch(sandbox);
  vi.advanceTimersByTime(sampleMs);
  expect(sandbox.sample).toHaveBeenCalledTimes(1);
});

test.for(["removed", "idle"] as const)("is not after that pause where it is %s", (now) => {
  const monitor = new ResourceMonitor();
  const sandbox = newSandbox();
  monitor.watchLater(sandbox);
  if (now === "removed") monitor.remove(sandbox);
  else monitor.watchIdle(sandbox);
  vi.advanceTimersByTime(idleSampleMs - 1);
  // An idle one has its own turn.
  expect(sandbox.sample.mock.calls.length).toBeLessThanOrEqual(now === "idle" ? 1 : 0);
});
