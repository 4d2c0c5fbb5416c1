/**
 * The in-process broker beyond the contract: its queues and its bounds.
 */
import { describe, expect, test } from "vitest";
import { createMemoryBroker } from "../../../worker/broker/memory/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull, textOf } from "../../conformance/broker.ts";

const never = new AbortController().signal;
const topic = invokeTopic("ns", "echo");

describe("the queue of a tool", () => {
  test("keeps calls while no session is there", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const former = await broker.connect(["echo"], never);
    await former[Symbol.asyncDispose]();
    broker.publish(topic, Buffer.from("1"));
    await using session = await broker.connect(["echo"], never);
    expect(textOf(await pull(session).next())).toBe("1");
  });

  test("goes with the last session that leaves its tool", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    await using one = await broker.connect(["echo"], never);
    await using other = await broker.connect(["echo"], never);
    await one.leave("echo", never);
    broker.publish(topic, Buffer.from('"for the other"'));
    expect(textOf(await pull(other).next())).toBe('"for the other"');
    broker.publish(topic, Buffer.from('"for nobody"'));
    await other.leave("echo", never);
    await one.serve("echo", never);
    broker.publish(topic, Buffer.from('"new"'));
    expect(textOf(await pull(one).next())).toBe('"new"');
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
  });
});
