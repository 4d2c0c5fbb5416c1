/**
 * Waiting, but not for ever.
 */
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import { settlesWithin } from "../../../worker/support/within.ts";

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
