/**
 * A subscription that moves from session to session: what it hears, what it loses, and what it
 * leaves behind.
 */
import { describe, expect, test } from "vitest";
import type { BrokerSubscription } from "../../../worker/broker/broker.ts";
import { LastingSubscription } from "../../../worker/broker/lasting-subscription.ts";
import { createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { textOf } from "../../conformance/broker.ts";

const never = new AbortController().signal;
const ignore = (): void => {};

/** A session that keeps those who subscribe waiting until it is told. */
class SlowSource {
  isDisposed = false;
  readonly #subscribing = Promise.withResolvers<BrokerSubscription>();

  subscribe(): Promise<BrokerSubscription> {
    return this.#subscribing.promise;
  }

  /** Lets the subscription be made; it hears one message. */
  answer(): void {
    const heard = { topic: "t", payload: Buffer.from("1"), properties: {} };
    this.#subscribing.resolve({
      dropped: 0,
      async *[Symbol.asyncIterator]() {
        yield await Promise.resolve(heard);
      },
      [Symbol.asyncDispose]: () => {
        this.isDisposed = true;
        return Promise.resolve();
      },
    });
  }
}

describe("a lasting subscription", () => {
  test("hears what each session brings, and adds up what each has dropped", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const publish = (count: number): void => {
      for (let n = 0; n < count; n++) broker.publish("t", Buffer.from(`${n}`));
    };
    await using former = await broker.connect([], never);
    await using session = await broker.connect([], never);
    await using subscription = new LastingSubscription("t", ignore);
    const heard = subscription[Symbol.asyncIterator]();
    const pending = heard.next();
    await subscription.moveTo(former, never);
    publish(1);
    expect(textOf((await pending).value!)).toBe("0");
    publish(10_002);
    expect(subscription.dropped).toBe(2);
    await subscription.moveTo(session, never);
    expect(subscription.dropped).toBe(2);
    publish(10_001);
    expect(subscription.dropped).toBe(3);
    expect(textOf((await heard.next()).value!)).toBe("1");
  });

  test("gives back the subscription that it moves away from", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect([], never);
    const source = new SlowSource();
    await using subscription = new LastingSubscription("t", ignore);
    source.answer();
    await subscription.moveTo(source, never);
    expect(source.isDisposed).toBe(false);
    await subscription.moveTo(session, never);
    expect(source.isDisposed).toBe(true);
    expect([subscription.isOn(source), subscription.isOn(session)]).toEqual([false, true]);
  });

  test("gives back what comes when it has moved on", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect([], never);
    const slow = new SlowSource();
    await using subscription = new LastingSubscription("t", ignore);
    const moving = subscription.moveTo(slow, never);
    await subscription.moveTo(session, never);
    slow.answer();
    await moving;
    expect(slow.isDisposed).toBe(true);
    expect(subscription.isOn(session)).toBe(true);
  });

  test("gives back what comes when it was disposed of meanwhile", async () => {
    const slow = new SlowSource();
    let disposals = 0;
    const subscription = new LastingSubscription("t", () => disposals++);
    const moving = subscription.moveTo(slow, never);
    await subscription[Symbol.asyncDispose]();
    slow.answer();
    await moving;
    expect([slow.isDisposed, subscription.isOn(slow), disposals]).toEqual([true, false, 1]);
    expect(await subscription[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
  });

  test("that has ended moves nowhere", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect([], never);
    await using subscription = new LastingSubscription("t", ignore);
    subscription.end();
    await subscription.moveTo(session, never);
    expect(subscription.isOn(session)).toBe(false);
    expect(broker.publish("t", Buffer.from("1"))).toBe("unroutable");
  });
});
