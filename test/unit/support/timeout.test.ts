/**
 * Waiting, but not for ever.
 */
import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import { abortable, settlesWithin } from "../../../worker/support/timeout.ts";

const never = new Promise<never>(() => {});
const hourMs = 3_600_000;

describe("waiting for something", () => {
  test.each([
    ["fulfils", () => Promise.resolve(1)],
    ["rejects", () => Promise.reject(new Error("it failed"))],
  ])("ends when it %s", async (_how, start) => {
    expect(await settlesWithin(start(), hourMs, systemClock)).toBe(true);
  });

  test("ends when the time is over", async () => {
    expect(await settlesWithin(never, 1, systemClock)).toBe(false);
  });

  test("ends when the signal aborts, before or meanwhile", async () => {
    expect(await settlesWithin(never, hourMs, systemClock, AbortSignal.abort())).toBe(false);
    const stopping = new AbortController();
    const waiting = settlesWithin(never, hourMs, systemClock, stopping.signal);
    stopping.abort();
    expect(await waiting).toBe(false);
  });
});

describe("waiting for what cannot be called off", () => {
  test("comes to what it comes to, and listens no longer", async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    expect(await abortable(Promise.resolve(1), signal)).toBe(1);
    await expect(abortable(Promise.reject(new Error("it failed")), signal)).rejects.toThrow(
      "it failed",
    );
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("ends with the signal's reason as soon as it aborts, and listens no longer", async () => {
    const stopping = new AbortController();
    const waiting = abortable(never, stopping.signal);
    stopping.abort(new Error("we stop"));
    await expect(waiting).rejects.toThrow("we stop");
    expect(getEventListeners(stopping.signal, "abort")).toEqual([]);
  });

  test("does not begin when the signal has aborted, whatever it comes to", async () => {
    const signal = AbortSignal.abort(new Error("we stop"));
    await expect(abortable(Promise.resolve(1), signal)).rejects.toThrow("we stop");
    // Nobody's failure: the run fails when it is nobody's and not dealt with.
    const failure = Promise.reject(new Error("it failed"));
    await expect(abortable(failure, signal)).rejects.toThrow("we stop");
    await nextTurn();
  });
});
