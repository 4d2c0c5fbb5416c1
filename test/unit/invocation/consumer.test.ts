/**
 * Pulling deliveries within bounds, and draining them.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { BrokerSession, Delivery } from "../../../worker/broker/broker.ts";
import { Consumer } from "../../../worker/invocation/consumer.ts";

/** Deliveries that are being refused are pulled beyond what can run or wait; the consumer's own bound. */
const refusalsInFlight = 16;
const never = new AbortController().signal;

function delivery(number: number): Delivery {
  return {
    topic: `tool/${number}`,
    payload: new Uint8Array(),
    redelivered: false,
    properties: {},
    settle: () => Promise.resolve(),
  };
}

/** A session with as many deliveries as anybody wants to pull. */
class EndlessSession implements Pick<BrokerSession, "deliveries" | "pause"> {
  pulled = 0;
  isPaused = false;
  /** Deliveries that come although the session is paused: it had pulled them already. */
  #buffered = 0;
  #ended = false;
  #wake = Promise.withResolvers<void>();

  readonly deliveries = this.#generate();

  async *#generate(): AsyncGenerator<Delivery> {
    while (!this.#ended) {
      if (this.isPaused && this.#buffered === 0) {
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
        continue;
      }
      if (this.isPaused) this.#buffered--;
      yield delivery(++this.pulled);
    }
  }

  pause(): Promise<void> {
    this.isPaused = true;
    return Promise.resolve();
  }

  bringLate(count: number): void {
    this.#buffered += count;
    this.#wake.resolve();
  }

  end(): void {
    this.#ended = true;
    this.#wake.resolve();
  }
}

/** A handler that holds every delivery until it is told otherwise. */
class Handler {
  readonly topics: string[] = [];
  readonly #held: (() => void)[] = [];

  readonly handle = ({ topic }: Delivery): Promise<void> => {
    this.topics.push(topic);
    return new Promise((resolve) => this.#held.push(resolve));
  };

  /** Finishes the `count` deliveries that were held first. */
  async finish(count: number): Promise<void> {
    for (const finish of this.#held.splice(0, count)) finish();
    await nextTurn();
  }
}

async function startConsumer(maxCalls: number) {
  const session = new EndlessSession();
  const handler = new Handler();
  const consumer = new Consumer(session, handler.handle, maxCalls);
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
  test("pulls what can run or wait and a few more to be refused, and no further", async () => {
    const { session, consumer } = await startConsumer(3);
    expect(session.pulled).toBe(3 + refusalsInFlight);
    expect(consumer.inFlight).toBe(3 + refusalsInFlight);
    await nextTurn();
    expect(session.pulled).toBe(3 + refusalsInFlight);
  });

  test("pulls one more for each that is handled, in whatever order they finish", async () => {
    const { session, handler, consumer } = await startConsumer(1);
    await handler.finish(1);
    expect(session.pulled).toBe(1 + refusalsInFlight + 1);
    await handler.finish(5);
    expect(session.pulled).toBe(1 + refusalsInFlight + 6);
    expect(consumer.inFlight).toBe(1 + refusalsInFlight);
  });

  test("hands deliveries on in the order in which they come", async () => {
    const { handler } = await startConsumer(2);
    expect(handler.topics.slice(0, 4)).toEqual(["tool/1", "tool/2", "tool/3", "tool/4"]);
  });

  test("ends with the session, while deliveries are still being handled", async () => {
    const { session, handler, consumer, running } = await startConsumer(1);
    await session.pause();
    await handler.finish(2);
    session.end();
    await running;
    expect(consumer.inFlight).toBe(refusalsInFlight - 1);
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
    const consumer = new Consumer(session, () => Promise.resolve(), 1);
    await expect(consumer.run()).rejects.toBe(reason);
  });
});

describe("a drain", () => {
  test("stops intake and ends when nothing is in flight any more", async () => {
    const { session, handler, consumer } = await startConsumer(1);
    const drained = consumer.drain(never);
    expect(session.isPaused).toBe(true);
    await handler.finish(refusalsInFlight);
    expect(await isSettled(drained)).toBe(false);
    await handler.finish(1);
    // The one that was pulled when the first had finished.
    await handler.finish(1);
    expect((await drained).abandoned).toBe(0);
    expect(consumer.inFlight).toBe(0);
  });

  test("with nothing in flight is over at once", async () => {
    const session = new EndlessSession();
    await session.pause();
    const consumer = new Consumer(session, () => Promise.resolve(), 1);
    void consumer.run();
    expect(await consumer.drain(never)).toEqual({ finished: 0, abandoned: 0 });
  });

  test("ends at its deadline and tells how many it did not wait for", async () => {
    const { session, handler, consumer } = await startConsumer(1);
    await session.pause();
    await handler.finish(7);
    const inFlight = consumer.inFlight;
    const deadline = new AbortController();
    const drained = consumer.drain(deadline.signal);
    await nextTurn();
    await handler.finish(4);
    deadline.abort();
    expect(await drained).toEqual({ finished: 4, abandoned: inFlight - 4 });
  });

  test("whose deadline is over already waits for nobody", async () => {
    const { consumer } = await startConsumer(1);
    expect(await consumer.drain(AbortSignal.abort())).toEqual({
      finished: 0,
      abandoned: consumer.inFlight,
    });
  });

  test("waits for, and counts, what the session had pulled before it was paused", async () => {
    const { session, handler, consumer } = await startConsumer(1);
    await session.pause();
    await handler.finish(refusalsInFlight);
    const before = consumer.inFlight;
    const deadline = new AbortController();
    const drained = consumer.drain(deadline.signal);
    await nextTurn();
    session.bringLate(5);
    await nextTurn();
    expect(consumer.inFlight).toBe(before + 5);
    await handler.finish(1);
    deadline.abort();
    expect(await drained).toEqual({ finished: 1, abandoned: before + 4 });
  });

  test("leaves nothing on a signal that outlives it", async () => {
    const session = new EndlessSession();
    await session.pause();
    const consumer = new Consumer(session, () => Promise.resolve(), 1);
    const listeners = new Set<unknown>();
    const signal = Object.assign(new AbortController().signal, {
      addEventListener: (_type: string, listener: unknown) => void listeners.add(listener),
      removeEventListener: (_type: string, listener: unknown) => void listeners.delete(listener),
    });
    await consumer.drain(signal);
    expect(listeners.size).toBe(0);
  });
});
