/**
 * Sessions that are connected and take calls from nowhere.
 */
import { describe, expect, test } from "vitest";
import type { BrokerError } from "../../../worker/broker/broker.ts";
import { QueueWatch } from "../../../worker/broker/queue-watch.ts";
import { HandClock } from "./hand-clock.ts";

function watched() {
  const clock = new HandClock();
  const ending = new AbortController();
  const given: BrokerError[] = [];
  const watch = new QueueWatch({
    clock,
    ended: ending.signal,
    giveUp: (cause) => given.push(cause),
  });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  return { watch, given, ending, clock, pass };
}

describe("a session without any queue", () => {
  test("is given up after a minute, once", async () => {
    const { watch, given, pass } = watched();
    watch.tell(true);
    await pass(59_999);
    watch.tell(true);
    expect(given).toEqual([]);
    await pass(1);
    expect(given).toMatchObject([{ transient: true }]);
    watch.tell(true);
    await pass(120_000);
    expect(given).toHaveLength(1);
  });

  test("goes on when it has one again, and begins to count anew when that is lost", async () => {
    const { watch, given, clock, pass } = watched();
    watch.tell(true);
    await pass(59_000);
    watch.tell(false);
    expect(clock.sleeping).toBe(0);
    watch.tell(true);
    await pass(59_000);
    expect(given).toEqual([]);
    await pass(1_000);
    expect(given).toHaveLength(1);
  });

  test("is not given up after it has ended", async () => {
    const { watch, given, ending, clock, pass } = watched();
    watch.tell(true);
    ending.abort();
    expect(clock.sleeping).toBe(0);
    await pass(60_000);
    expect(given).toEqual([]);
  });
});
