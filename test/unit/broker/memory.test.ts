/**
 * The in-process broker beyond the contract: its queue and its bounds.
 */
import { describe, expect, test } from "vitest";
import { type MemoryBroker, createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull, textOf } from "../../conformance/broker.ts";

const never = new AbortController().signal;
const topic = invokeTopic("ns", "echo");

describe("the queue", () => {
  test("keeps calls while no session is there", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const former = await broker.connect(["echo"], never);
    await former[Symbol.asyncDispose]();
    broker.publish(topic, Buffer.from("1"));
    await using session = await broker.connect(["echo"], never);
    expect(textOf(await pull(session).next())).toBe("1");
  });

  test("gets the calls of a tool that every session has left", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect(["echo"], never);
    await session.leave("echo", never);
    expect(broker.publish(topic, Buffer.from("1"))).toBe("confirmed");
    expect(textOf(await pull(session).next())).toBe("1");
  });

  test("is consumed by sessions that serve a tool, not by those that only publish", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using agent = await broker.connect([], never);
    const heard = pull(agent).next();
    await using session = await broker.connect(["echo"], never);
    broker.publish(topic, Buffer.from("1"));
    expect(textOf(await pull(session).next())).toBe("1");
    await agent.serve("other", never);
    broker.publish(topic, Buffer.from("2"));
    expect(textOf(await heard)).toBe("2");
  });

  test("does not grow without end", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect(["echo"], never);
    for (let n = 0; n < 10_000; n++) broker.publish(topic, Buffer.from("1"));
    expect(() => broker.publish(topic, Buffer.from("1"))).toThrow("10000 messages wait already");
    await pull(session).next();
    broker.publish(topic, Buffer.from("1"));
  });
});

describe("a dead letter", () => {
  const lettersOf = (broker: MemoryBroker): readonly string[] => broker.deadLetters.map(textOf);

  test("is what was rejected, and what was handed out too often, whatever became of it", async () => {
    const broker = createMemoryBroker({ namespace: "ns", maxDeliveries: 2 });
    await using session = await broker.connect(["echo"], never);
    const deliveries = pull(session);
    for (const text of ["1", "2", "3"]) broker.publish(topic, Buffer.from(text));
    await (await deliveries.next()).settle("rejected");
    await (await deliveries.next()).settle("failed");
    expect(lettersOf(broker)).toEqual(["1"]);
    await (await deliveries.next()).settle("failed");
    expect(lettersOf(broker)).toEqual(["1", "2"]);
    await (await deliveries.next()).settle("failed");
    expect((await deliveries.next()).deliveryCount).toBe(2);
    broker.dropSessions();
    expect(lettersOf(broker)).toEqual(["1", "2", "3"]);
  });

  test("is never what has no limit and is not rejected", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect(["echo"], never);
    const deliveries = pull(session);
    broker.publish(topic, Buffer.from("1"));
    for (let count = 1; count <= 50; count++) {
      const delivery = await deliveries.next();
      expect(delivery.deliveryCount).toBe(count);
      await delivery.settle("failed");
    }
    await (await deliveries.next()).settle("accepted");
    expect(lettersOf(broker)).toEqual([]);
  });

  test("goes when a thousand came after it", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using session = await broker.connect(["echo"], never);
    const deliveries = pull(session);
    for (let n = 0; n < 1_001; n++) {
      broker.publish(topic, Buffer.from(`${n}`));
      await (await deliveries.next()).settle("rejected");
    }
    expect(lettersOf(broker)).toHaveLength(1_000);
    expect(lettersOf(broker)[0]).toBe("1");
  });
});

describe("a subscription", () => {
  test("hears what it asked for until it is disposed of", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const heard: string[] = [];
    {
      using subscription = broker.subscribe("a/>");
      broker.publish("a/b", Buffer.from("1"));
      broker.publish("b/a", Buffer.from("2"));
      broker.publish("a/c", Buffer.from("3"), { n: 1 });
      for await (const message of subscription) {
        heard.push(`${message.topic} ${Buffer.from(message.payload).toString()}`);
        if (heard.length === 2) break;
      }
    }
    expect(heard).toEqual(["a/b 1", "a/c 3"]);
  });

  test("ends for one who waits when it is disposed of", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const subscription = broker.subscribe(">");
    const next = subscription[Symbol.asyncIterator]().next();
    subscription[Symbol.dispose]();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test("forgets the oldest of too many messages", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    using subscription = broker.subscribe("t");
    for (let n = 0; n < 10_001; n++) broker.publish("t", Buffer.from(`${n}`));
    for await (const { payload } of subscription) {
      expect(Buffer.from(payload).toString()).toBe("1");
      break;
    }
    expect(subscription.dropped).toBe(1);
  });

  test("of a session that ends still hands out what it has heard", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const session = await broker.connect([], never);
    await using subscription = await session.subscribe("t", never);
    broker.publish("t", Buffer.from("1"));
    await session[Symbol.asyncDispose]();
    expect(broker.publish("t", Buffer.from("2"))).toBe("unroutable");
    const heard: string[] = [];
    for await (const message of subscription) heard.push(textOf(message));
    expect(heard).toEqual(["1"]);
  });
});
