/**
 * Waiting, but not for ever.
 */
import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import {
  abortable,
  after,
  onAbort,
  settlesWithin,
  withTimeout,
} from "../../../worker/support/timeout.ts";

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

/** The machine's time by another way, as clocks of tests have it. */
const otherClock: Pick<Clock, "sleep"> = { sleep: (ms, signal) => systemClock.sleep(ms, signal) };

describe.each([
  ["the machine's clock", systemClock],
  ["another clock", otherClock],
])("a callback by %s", (_whose, clock) => {
  test("comes when the time is over, once", async () => {
    let calls = 0;
    await new Promise<void>((resolve) => {
      after(1, clock, () => {
        calls++;
        resolve();
      });
    });
    await nextTurn();
    expect(calls).toBe(1);
  });

  test("does not come after the disposal", async () => {
    const called: string[] = [];
    const disposed = after(1, clock, () => called.push("disposed"));
    disposed[Symbol.dispose]();
    await new Promise<void>((resolve) => {
      after(5, clock, () => {
        called.push("later");
        resolve();
      });
    });
    expect(called).toEqual(["later"]);
  });

  test("ends work that takes too long, and says so", async () => {
    const waitsForAbort = (signal: AbortSignal) => abortable(never, signal);
    const { signal } = new AbortController();
    await expect(withTimeout(1, clock, signal, waitsForAbort)).rejects.toThrow(
      "not done within 1 ms",
    );
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("work with a time", () => {
  test("brings its result, and ends with the signal's reason, before or meanwhile", async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    expect(await withTimeout(hourMs, systemClock, signal, () => Promise.resolve(1))).toBe(1);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    const own = new AbortController();
    const stops = async (over: AbortSignal) => {
      own.abort(new Error("we stop"));
      return abortable(never, over);
    };
    await expect(withTimeout(hourMs, systemClock, own.signal, stops)).rejects.toThrow("we stop");
    const waiting = withTimeout(hourMs, systemClock, signal, (over) => abortable(never, over));
    stopping.abort(new Error("we stop"));
    await expect(waiting).rejects.toThrow("we stop");
    const late = withTimeout(hourMs, systemClock, signal, (over) => abortable(never, over));
    await expect(late).rejects.toThrow("we stop");
    expect(getEventListeners(signal, "abort")).toEqual([]);
    const begun = (over: AbortSignal) => Promise.resolve(over.aborted);
    expect(await withTimeout(hourMs, systemClock, signal, begun)).toBe(true);
  });
});

describe("listening for an abort", () => {
  test("hears it once, also one of before, and nothing after the disposal", () => {
    const [early, late, never] = [0, 0, 0].map(() => new AbortController());
    const heard: string[] = [];
    early?.abort();
    for (const [name, each] of Object.entries({ early, late, never }))
      if (each !== undefined) onAbort(each.signal, () => heard.push(name));
    late?.abort();
    const disposing = new AbortController();
    onAbort(disposing.signal, () => heard.push("disposed"))[Symbol.dispose]();
    disposing.abort();
    expect(heard).toEqual(["early", "late"]);
  });
});
