/**
 * Pulling deliveries within bounds, and draining them.
 */
import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { BrokerSession, Delivery, Settlement } from "../../../../worker/broker/broker.ts";
import {
  Consumer,
  type ReceivedDelivery,
  maxDeliveriesInFlight,
  maxRequestBytesInFlight,
} from "../../../../worker/invocation/deliveries/consumer.ts";

const never = new AbortController().signal;
const answered = (): ReceivedDelivery => ({
  isRunning: () => false,
  handle: () => Promise.resolve("accepted"),
});

function delivery(number: number, sizeBytes = 0): Delivery {
  return {
    topic: `tool/${number}`,
    payload: new Uint8Array(sizeBytes),
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: {},
    settle: () => Promise.resolve(),
  };
}

/** A session with as many deliveries as anybody wants to pull. */
class EndlessSession implements Pick<BrokerSession, "deliveries" | "pause"> {
  pulled = 0;
  isPaused = false;
  readonly #sizeBytes: number;
  /** Deliveries that come although the session is paused: it was just receiving them. */
  #late = 0;
  #isEnded = false;
  #wake = Promise.withResolvers<void>();

  readonly deliveries = this.#generate();

  constructor(sizeBytes = 0) {
    this.#sizeBytes = sizeBytes;
  }

  async *#generate(): AsyncGenerator<Delivery> {
    while (!this.#isEnded) {
      if (this.isPaused && this.#late === 0) {
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
        continue;
      }
      if (this.isPaused) this.#late--;
      yield delivery(++this.pulled, this.#sizeBytes);
    }
  }

  pause(): Promise<void> {
    this.isPaused = true;
    return Promise.resolve();
  }

  bringLate(count: number): void {
    this.#late += count;
    this.#wake.resolve();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake.resolve();
  }
}

/** A handler that holds every delivery until it is told otherwise. */
class Handler {
  readonly topics: string[] = [];
  readonly #held: ((settlement: Settlement | undefined) => void)[] = [];

  readonly receive = ({ topic }: Delivery): ReceivedDelivery => ({
    isRunning: () => false,
    handle: () => {
      this.topics.push(topic);
      return new Promise((resolve) => this.#held.push(resolve));
    },
  });

  /** Finishes the `count` deliveries that were held first. */
  async finish(count: number, settlement: Settlement | "left" = "accepted"): Promise<void> {
    for (const finish of this.#held.splice(0, count)) {
      finish(settlement === "left" ? undefined : settlement);
    }
    await nextTurn();
  }
}

async function startConsumer(maxInFlight: number, sizeBytes = 0) {
  const session = new EndlessSession(sizeBytes);
  const handler = new Handler();
  const consumer = new Consumer(session, handler.receive, maxInFlight);
  const running = consumer.run();
  await nextTurn();
  return { session, handler, consumer, running };
}

/** Whether a promise has been settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => (settled = true));
  await nextTurn();
  return settled;
}

describe("a consumer", () => {
  test("pulls as many as may be in flight, and the next one, and no further", async () => {
    const { session, consumer } = await startConsumer(3);
    expect(session.pulled).toBe(4);
    expect(consumer.inFlight).toBe(3);
    await nextTurn();
    expect(session.pulled).toBe(4);
  });

  test("handles what is of a call in flight though there is no room, and in its turn what is not", async () => {
    async function* again(): AsyncGenerator<Delivery> {
      for (const number of [1, 2, 1, 2, 3, 1]) yield delivery(number);
    }
    const handler = new Handler();
    const session = { deliveries: again(), pause: () => Promise.resolve() };
    const receive = (delivery: Delivery): ReceivedDelivery => ({
      ...handler.receive(delivery),
      isRunning: () => handler.topics.includes(delivery.topic),
    });
    const consumer = new Consumer(session, receive, 2);
    void consumer.run();
    await nextTurn();
    expect(handler.topics).toEqual(["tool/1", "tool/2", "tool/1", "tool/2"]);
    await handler.finish(3);
    expect(handler.topics.slice(4)).toEqual(["tool/3", "tool/1"]);
  });

  test("gives up what was lost while it waited for room, and goes on with the next", async () => {
    const settled: string[] = [];
    const lost = { ...delivery(2), isLost: true };
    const settle = (outcome: Settlement): Promise<void> =>
      Promise.resolve(void settled.push(outcome));
    async function* some(): AsyncGenerator<Delivery> {
      yield delivery(1);
      yield { ...lost, settle };
      yield delivery(3);
    }
    const handler = new Handler();
    const session = { deliveries: some(), pause: () => Promise.resolve() };
    const consumer = new Consumer(session, handler.receive, 1);
    void consumer.run();
    await nextTurn();
    expect([handler.topics, settled]).toEqual([["tool/1"], []]);
    await handler.finish(1);
    expect([handler.topics, settled]).toEqual([["tool/1", "tool/3"], ["failed"]]);
  });

  test("pulls one more for each that is handled, in whatever order they finish", async () => {
    const { session, handler, consumer } = await startConsumer(7);
    await handler.finish(1);
    expect(session.pulled).toBe(9);
    await handler.finish(5);
    expect(session.pulled).toBe(14);
    expect(consumer.inFlight).toBe(7);
  });

  test(
    "stops pulling at a number of bytes, until requests of as many have been handled",
    { tags: "promise-B8" },
    async () => {
      const { session, handler, consumer } = await startConsumer(100, maxRequestBytesInFlight / 4);
      expect(session.pulled).toBe(5);
      await nextTurn();
      expect(session.pulled).toBe(5);
      await handler.finish(1);
      expect(session.pulled).toBe(6);
      await handler.finish(4);
      expect(session.pulled).toBe(10);
      expect(consumer.inFlight).toBe(4);
    },
  );

  test("pulls nothing for a small request that is handled while large ones take all the room", async () => {
    async function* mixed(): AsyncGenerator<Delivery> {
      yield delivery(1, 1);
      yield delivery(2, maxRequestBytesInFlight);
      yield delivery(3, 1);
    }
    const handler = new Handler();
    const session = { deliveries: mixed(), pause: () => Promise.resolve() };
    const consumer = new Consumer(session, handler.receive, 100);
    void consumer.run();
    await nextTurn();
    await handler.finish(1);
    expect(handler.topics).toEqual(["tool/1", "tool/2"]);
    await handler.finish(1);
    expect(handler.topics).toEqual(["tool/1", "tool/2", "tool/3"]);
  });

  test("handles a request that is larger than all together may be, alone", async () => {
    const { session, handler, consumer } = await startConsumer(100, maxRequestBytesInFlight + 1);
    expect(consumer.inFlight).toBe(1);
    await handler.finish(1);
    expect(session.pulled).toBe(3);
    expect(consumer.inFlight).toBe(1);
  });

  test("hands deliveries on in the order in which they come", async () => {
    const { handler } = await startConsumer(4);
    expect(handler.topics.slice(0, 4)).toEqual(["tool/1", "tool/2", "tool/3", "tool/4"]);
  });

  test("ends with the session, while deliveries are still being handled", async () => {
    const { session, handler, consumer, running } = await startConsumer(5);
    await session.pause();
    await handler.finish(2);
    session.end();
    await running;
    // The one that was in hand was handled as well.
    expect(consumer.inFlight).toBe(4);
    const settled = consumer.settled();
    expect(await isSettled(settled)).toBe(false);
    await handler.finish(100);
    await settled;
    expect(consumer.inFlight).toBe(0);
  });

  test("fails with the session", async () => {
    const reason = new Error("the subscription was revoked");
    async function* broken(): AsyncGenerator<Delivery> {
      yield delivery(1);
      throw reason;
    }
    const session = { deliveries: broken(), pause: () => Promise.resolve() };
    const consumer = new Consumer(session, answered, 1);
    await expect(consumer.run()).rejects.toBe(reason);
  });
});

describe("deliveries in flight", () => {
  const limits = { maxConcurrent: 4, maxQueued: 100, maxSuspended: 8 };

  test("are bounded by the broker's prefetch limits where it redelivers", () => {
    expect(maxDeliveriesInFlight(limits, true)).toBe(Infinity);
  });

  test("are those that can run or wait, and a few more to be refused, where nobody else would", () => {
    expect(maxDeliveriesInFlight(limits, false)).toBe(4 + 100 + 8 + 16);
  });
});

describe("a drain", () => {
  test("stops intake and ends when nothing is in flight any more", async () => {
    const { session, handler, consumer, running } = await startConsumer(5);
    const drained = consumer.drain(never);
    expect(session.isPaused).toBe(true);
    session.end();
    await handler.finish(5);
    expect(await isSettled(drained)).toBe(false);
    // The one that was in hand.
    await handler.finish(1);
    expect(await drained).toEqual({ finished: 6, requeued: 0, abandoned: 0 });
    expect(consumer.inFlight).toBe(0);
    await running;
  });

  test("with nothing in flight is over as soon as the session has nothing more", async () => {
    const session = new EndlessSession();
    await session.pause();
    const consumer = new Consumer(session, answered, 1);
    void consumer.run();
    const drained = consumer.drain(never);
    expect(await isSettled(drained)).toBe(false);
    session.end();
    expect(await drained).toEqual({ finished: 0, requeued: 0, abandoned: 0 });
  });

  test("waits for, and counts, what the session was just receiving when it was paused", async () => {
    const session = new EndlessSession();
    await session.pause();
    const handler = new Handler();
    const consumer = new Consumer(session, handler.receive, 2);
    void consumer.run();
    const drained = consumer.drain(never);
    expect(await isSettled(drained)).toBe(false);
    session.bringLate(2);
    await nextTurn();
    session.end();
    await handler.finish(1);
    expect(await isSettled(drained)).toBe(false);
    await handler.finish(1);
    expect(await drained).toEqual({ finished: 2, requeued: 0, abandoned: 0 });
  });

  test("waits for the session to stop its intake", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* none(): AsyncGenerator<Delivery> {}
    const session = { deliveries: none(), pause: () => promise };
    const consumer = new Consumer(session, answered, 1);
    await consumer.run();
    const drained = consumer.drain(never);
    expect(await isSettled(drained)).toBe(false);
    resolve();
    await drained;
  });

  test("ends at its deadline and tells how many were finished, given back, and not waited for", async () => {
    const { session, handler, consumer } = await startConsumer(17);
    await session.pause();
    await handler.finish(7);
    const inFlight = consumer.inFlight;
    const deadline = new AbortController();
    const drained = consumer.drain(deadline.signal);
    await nextTurn();
    await handler.finish(3);
    await handler.finish(1, "rejected");
    await handler.finish(2, "failed");
    await handler.finish(1, "left");
    deadline.abort();
    expect(await drained).toEqual({ finished: 4, requeued: 2, abandoned: inFlight - 7 });
  });

  test("ends at its deadline also when the session does not stop", async () => {
    async function* stuck(): AsyncGenerator<Delivery> {
      await new Promise(() => {});
    }
    const session = { deliveries: stuck(), pause: () => new Promise<void>(() => {}) };
    const consumer = new Consumer(session, answered, 1);
    void consumer.run();
    const deadline = new AbortController();
    const drained = consumer.drain(deadline.signal);
    expect(await isSettled(drained)).toBe(false);
    deadline.abort();
    expect(await drained).toEqual({ finished: 0, requeued: 0, abandoned: 0 });
    await consumer.settled(deadline.signal);
  });

  test("whose deadline is over already waits for nobody", async () => {
    const { consumer } = await startConsumer(1);
    expect(await consumer.drain(AbortSignal.abort())).toEqual({
      finished: 0,
      requeued: 0,
      abandoned: consumer.inFlight,
    });
  });

  test("has what comes after its deadline handled too, before all is settled", async () => {
    const { session, handler, consumer } = await startConsumer(1);
    await consumer.drain(AbortSignal.abort());
    await handler.finish(1000);
    await handler.finish(1000);
    const settled = consumer.settled();
    expect(await isSettled(settled)).toBe(false);
    session.bringLate(1);
    await nextTurn();
    session.end();
    expect(await isSettled(settled)).toBe(false);
    await handler.finish(1000);
    await settled;
    expect(handler.topics).toHaveLength(session.pulled);
  });

  test("of a session that fails ends with it", async () => {
    async function* broken(): AsyncGenerator<Delivery> {
      yield delivery(1);
      throw new Error("the subscription was revoked");
    }
    const session = { deliveries: broken(), pause: () => Promise.resolve() };
    const consumer = new Consumer(session, answered, 1);
    const running = consumer.run();
    const drained = consumer.drain(never);
    await expect(running).rejects.toThrow("revoked");
    expect(await drained).toMatchObject({ abandoned: 0 });
  });

  test("leaves nothing on a signal that outlives it", async () => {
    const session = new EndlessSession();
    session.end();
    const consumer = new Consumer(session, answered, 1);
    const signal = new AbortController().signal;
    await consumer.drain(signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
