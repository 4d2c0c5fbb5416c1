/**
 * The machine's own time.
 */
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";

describe("the system clock", () => {
  test("tells epoch milliseconds", () => {
    const before = Date.now();
    const now = systemClock.nowMs();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });

  test("sleeps for as long as it is told, on the clock that never goes back", async () => {
    const startMs = systemClock.monotonicMs();
    await systemClock.sleep(30);
    // Timers may fire a fraction of a millisecond early.
    expect(systemClock.monotonicMs() - startMs).toBeGreaterThan(28);
  });

  test("wakes with the signal's own reason as soon as it aborts", async () => {
    const waking = new AbortController();
    const reason = new Error("wake up");
    const sleeping = systemClock.sleep(60_000, waking.signal);
    waking.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
  });

  test("does not fall asleep under a signal that has aborted", async () => {
    const reason = new Error("no time for that");
    await expect(systemClock.sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test("keeps no timer for a sleep that was woken", async () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const waking = new AbortController();
    const sleeping = systemClock.sleep(60_000, waking.signal);
    expect(timers()).toBe(before + 1);
    waking.abort();
    await expect(sleeping).rejects.toThrow();
    expect(timers()).toBe(before);
  });
});
