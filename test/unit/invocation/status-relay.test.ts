/**
 * The pace of statuses.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type RelayedStatus, StatusRelay } from "../../../worker/invocation/steps/status-relay.ts";
import type { Clock } from "../../../worker/support/clock.ts";

/** Time that stands still until a test moves it; timers follow it. */
class StandingClock implements Clock {
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    });
  }

  /** Lets time pass in small steps, so that whoever waits wakes when it should. */
  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 10) {
      this.#nowMs += 10;
      await vi.advanceTimersByTimeAsync(10);
    }
  }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

function range(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
}

/** A relay, its clock, and what it has published. */
function startRelay(publish?: (text: string, clock: StandingClock) => Promise<void>) {
  const clock = new StandingClock();
  const published: string[] = [];
  const relay = new StatusRelay(async ({ text }) => {
    await publish?.(text, clock);
    published.push(text);
  }, clock);
  const push = (texts: readonly string[]): void => texts.forEach((text) => relay.push({ text }));
  return { relay, clock, published, push };
}

describe("the statuses of a call", () => {
  test("pass at once and in order, up to 50 of them", async () => {
    const { relay, clock, published, push } = startRelay();
    push(range(1, 50));
    await clock.pass(10);
    expect(published).toEqual(range(1, 50));
    expect(await relay.finish()).toEqual({ published: 50, coalesced: 0 });
  });

  test("beyond the first 50 wait for their turn, 10 a second", async () => {
    const { clock, published, push } = startRelay();
    push(range(1, 51));
    await clock.pass(90);
    expect(published).toEqual(range(1, 50));
    await clock.pass(10);
    expect(published).toEqual(range(1, 51));
    push(["52"]);
    await clock.pass(90);
    expect(published).toHaveLength(51);
    await clock.pass(10);
    expect(published.at(-1)).toBe("52");
  });

  test("that come too fast are replaced by the newest, which always arrives", async () => {
    const { relay, clock, published, push } = startRelay();
    push(range(1, 1_000));
    await clock.pass(100);
    expect(published).toEqual([...range(1, 50), "1000"]);
    expect(await relay.finish()).toEqual({ published: 51, coalesced: 949 });
  });

  test("that come too fast keep the newest of each detail", async () => {
    const clock = new StandingClock();
    const published: RelayedStatus[] = [];
    const relay = new StatusRelay(async (status) => void published.push(status), clock);
    for (const text of range(1, 50)) relay.push({ text });
    relay.push({ text: "51", details: { progress: { done: 1 }, partialResult: 1 } });
    relay.push({ text: "52", details: { progress: { done: 2 } } });
    relay.push({ text: "53", details: { log: { level: "info", text: "53" } } });
    relay.push({ text: "54" });
    await relay.finish();
    expect(published.at(-1)).toEqual({
      text: "54",
      details: { progress: { done: 2 }, partialResult: 1, log: { level: "info", text: "53" } },
    });
  });

  test("of a tool that never stops go out at the pace, each the newest of its time", async () => {
    const { relay, clock, published } = startRelay();
    for (let status = 1; status <= 500; status++) {
      relay.push({ text: String(status) });
      await clock.pass(10);
    }
    // 50 at once, and 5 seconds at 10 a second.
    expect(published.length).toBeGreaterThanOrEqual(98);
    expect(published.length).toBeLessThanOrEqual(101);
    expect(published).toEqual(published.toSorted((a, b) => Number(a) - Number(b)));
    const report = await relay.finish();
    expect(published.at(-1)).toBe("500");
    expect(report.published + report.coalesced).toBe(500);
  });

  test("of a slow tool all arrive, however many they are", async () => {
    const { relay, clock, published } = startRelay();
    for (const text of range(1, 200)) {
      relay.push({ text });
      await clock.pass(100);
    }
    expect(published).toEqual(range(1, 200));
    expect(await relay.finish()).toEqual({ published: 200, coalesced: 0 });
  });

  test("may come in a burst again after a rest, but never in a larger one", async () => {
    const { clock, published, push } = startRelay();
    push(range(1, 50));
    await clock.pass(60_000);
    push(range(51, 150));
    await clock.pass(10);
    expect(published).toEqual(range(1, 100));
  });

  test("that still wait when the call ends go out with it, without a wait", async () => {
    const { relay, published, push } = startRelay();
    push(range(1, 60));
    expect(await relay.finish()).toEqual({ published: 51, coalesced: 9 });
    expect(published).toEqual([...range(1, 50), "60"]);
  });

  test("are none, and the end is at once", async () => {
    const { relay } = startRelay();
    expect(await relay.finish()).toEqual({ published: 0, coalesced: 0 });
  });

  test("leave no timer behind", async () => {
    const { relay, push } = startRelay();
    push(range(1, 60));
    expect(vi.getTimerCount()).toBe(1);
    await relay.finish();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a publisher", () => {
  test("that is slow gets one status after the other, and no more than 50 wait for it", async () => {
    let calls = 0;
    const { relay, clock, published, push } = startRelay(async (_text, time) => {
      expect(++calls).toBe(1);
      await time.sleep(1_000);
      calls--;
    });
    push(range(1, 50));
    await clock.pass(10_000);
    expect(published).toEqual(range(1, 10));
    push(range(51, 150));
    await clock.pass(60_000);
    expect(published).toEqual([...range(1, 60), "150"]);
    expect(await relay.finish()).toEqual({ published: 61, coalesced: 89 });
  });

  test("that hangs holds the answer up for 5 seconds and no longer", async () => {
    const { relay, clock, push } = startRelay(() => new Promise(() => undefined));
    push(["1", "2"]);
    let isOver = false;
    const finished = relay.finish().finally(() => (isOver = true));
    await clock.pass(4_990);
    expect(isOver).toBe(false);
    await clock.pass(10);
    expect(await finished).toEqual({ published: 0, coalesced: 0 });
  });

  test("that fails once is asked again with the next status", async () => {
    const { relay, published, push } = startRelay((text) =>
      text === "2" ? Promise.reject(new Error("connection lost")) : Promise.resolve(),
    );
    push(["1", "2", "3"]);
    expect(await relay.finish()).toEqual({ published: 2, coalesced: 0 });
    expect(published).toEqual(["1", "3"]);
  });

  test("that always fails keeps nothing from ending", async () => {
    const { relay, clock, push } = startRelay(() => Promise.reject(new Error("no broker")));
    push(range(1, 200));
    await clock.pass(200);
    expect(await relay.finish()).toEqual({ published: 0, coalesced: 149 });
  });
});

describe("statuses, whenever they come", () => {
  const happenings = fc.array(
    fc.oneof(
      fc.record({ push: fc.integer({ min: 1, max: 80 }) }),
      fc.record({ passMs: fc.nat(40) }),
    ),
    { maxLength: 30 },
  );

  propertyTest.prop([happenings], { numRuns: 50 })(
    "keep their order, stay within the pace, and end with the last",
    async (steps) => {
      const { relay, clock, published } = startRelay();
      let pushed = 0;
      for (const step of steps) {
        if ("push" in step) {
          for (let i = 0; i < step.push; i++) relay.push({ text: String(++pushed) });
        } else {
          await clock.pass(step.passMs * 10);
        }
        // Let what was sent arrive.
        await vi.advanceTimersByTimeAsync(0);
        expect(published.length).toBeLessThanOrEqual(50 + clock.nowMs() / 100);
      }
      const report = await relay.finish();
      expect(published).toEqual(published.toSorted((a, b) => Number(a) - Number(b)));
      expect(new Set(published).size).toBe(published.length);
      if (pushed > 0) expect(published.at(-1)).toBe(String(pushed));
      expect(report).toEqual({
        published: published.length,
        coalesced: pushed - published.length,
      });
    },
  );

  test("that the answer could not wait for are not sent behind it", async () => {
    const stalled = Promise.withResolvers<void>();
    const { relay, clock, published, push } = startRelay((text) =>
      text === "1" ? stalled.promise : Promise.resolve(),
    );
    push(["1", "2"]);
    const finished = relay.finish();
    await clock.pass(6_000);
    await finished;
    stalled.resolve();
    await clock.pass(100);
    expect(published).toEqual(["1"]);
  });
});
