/**
 * What the RabbitMQ adapter makes on the broker, and what becomes of messages there.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { AmqpConnection } from "../../../worker/broker/amqp/connection.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer, keyOf } from "../../conformance/peers/amqp-peer.ts";
import { hear, pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { connectOperator, never, newNamespace, useRabbitMQ } from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const node = useRabbitMQ();

/** A worker with a queue `heavy` for the tool of that name, for one test. */
async function openQueues() {
  const owned = new AsyncDisposableStack();
  onTestFinished(() => owned.disposeAsync());
  const [namespace, log] = [newNamespace(), keptLog()];
  const queues = new Map([
    ["default", 3],
    ["heavy", 3],
  ]);
  const queueOf = (tool: string): string => (tool === "heavy" ? "heavy" : "default");
  const broker = amqpBroker({ url: node().url, namespace, log, queues, queueOf });
  const session = owned.use(await broker.connect(["echo", "heavy"], never));
  const peer = owned.use(await connectAmqpPeer(node().url, namespace));
  const operator = owned.use(await connectOperator(node().url));
  return { session, peer, operator, log, namespace, queue: `${namespace}/q/sandbox/default` };
}

describe("the queue of a group", () => {
  test.each([
    ["default", "default", "default"],
    ["reports", "default", "reports"],
    ["reports", "heavy", "reports/heavy"],
  ])(
    "%s, %s, has the name and the arguments that operators were told",
    async (group, queue, name) => {
      const namespace = newNamespace();
      const broker = amqpBroker({
        ...{ url: node().url, namespace, consumerTimeoutSeconds: 120 },
        ...{ group, queues: new Map([[queue, 1]]), queueOf: () => queue },
      });
      await using _session = await broker.connect(["echo"], never);
      await using operator = await connectOperator(node().url);
      await operator.channel.assertQueue(`${namespace}/q/sandbox/${name}`, {
        durable: true,
        arguments: {
          "x-queue-type": "quorum",
          "x-delivery-limit": 4,
          "x-dead-letter-exchange": `${namespace}/dead-letter`,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish",
          "x-consumer-timeout": 120_000,
          "x-expires": 86_400_000,
        },
      });
    },
  );

  test("is refused with the remedy when it exists with other arguments", async () => {
    const namespace = newNamespace();
    const url = node().url;
    await using _session = await amqpBroker({ url, namespace }).connect(["echo"], never);
    const other = amqpBroker({ url, namespace, maxDeliveries: 3 });
    await expect(other.connect(["echo"], never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.stringMatching(
        /queue test\/place-\d+\/q\/sandbox\/default: .*x-delivery-limit.*delete it when it is empty/s,
      ),
    });
  });

  test("that is deleted takes no call along that a worker has", async () => {
    const { session, peer, operator, queue, log, namespace } = await openQueues();
    const topic = invokeTopic(namespace, "echo");
    const deliveries = pull(session);
    await peer.publish(topic, "1");
    const running = await deliveries.next();
    await peer.publish(topic, "2");
    await vi.waitFor(
      async () => expect((await operator.channel.checkQueue(queue)).messageCount).toBe(0),
      patience,
    );
    await operator.channel.deleteQueue(queue);
    await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
    expect(textOf(await deliveries.next())).toBe("2");
    await running.settle("accepted");
  });

  test("is made and consumed again when somebody deletes it, while others go on and answers go out", async () => {
    const { session, peer, operator, queue, log, namespace } = await openQueues();
    const deliveries = pull(session);
    await operator.channel.deleteQueue(queue);
    await vi.waitFor(() => expect(log.events).toContain("queue.consume_refused"), patience);
    await peer.publish(invokeTopic(namespace, "heavy"), "1");
    const running = await deliveries.next();
    expect(running.queue).toBe("heavy");
    const heard = await peer.listen(`${namespace}/answers`);
    const answer = { topic: `${namespace}/answers`, payload: Buffer.from("answer") };
    expect(await session.publish(answer, never)).toBe("confirmed");
    expect((await heard()).payload).toBe("answer");
    expect(session.notReadyReasons).toEqual([]);
    await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
    expect(log.factsOf("queue.consume_refused")).toMatchObject([
      { queue, reason: expect.stringContaining("its queue was removed") },
    ]);
    await peer.publish(invokeTopic(namespace, "echo"), "2");
    expect(await deliveries.next()).toMatchObject({ queue: "default", redelivered: false });
    await running.settle("accepted");
  });

  test("that is deleted again and again leaves no channel behind", { tags: "full" }, async () => {
    const opened = vi.spyOn(AmqpConnection.prototype, "openChannel");
    const released = vi.spyOn(AmqpConnection.prototype, "release");
    onTestFinished(() => void vi.restoreAllMocks());
    const { session, peer, operator, queue, log, namespace } = await openQueues();
    const deliveries = pull(session);
    const channels: number[] = [];
    for (const times of [1, 2]) {
      await peer.publish(invokeTopic(namespace, "echo"), "call");
      const running = await deliveries.next();
      await operator.channel.deleteQueue(queue);
      await vi.waitFor(
        () => expect(log.factsOf("queue.consume_resumed")).toHaveLength(times),
        patience,
      );
      await running.settle("accepted");
      channels.push(opened.mock.calls.length - released.mock.calls.length);
    }
    expect(channels[1]).toBe(channels[0]);
  });
});

describe("a dead letter", () => {
  test.each([
    ["rejected", 1, "rejected"],
    ["failed", 2, "delivery_limit"],
  ] as const)("is kept when a call was %s", async (outcome, times, reason) => {
    const namespace = newNamespace();
    const topic = invokeTopic(namespace, "echo");
    const broker = amqpBroker({ url: node().url, namespace, maxDeliveries: 2 });
    await using session = await broker.connect(["echo"], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    await peer.publish(topic, '"poison"', { clientId: "agent" });
    const deliveries = pull(session);
    for (let count = 1; count <= times; count++) {
      const delivery = await deliveries.next();
      expect(delivery.deliveryCount).toBe(count);
      await delivery.settle(outcome);
    }
    const letter = await vi.waitFor(async () => {
      const got = await operator.channel.get(`${namespace}/q/dead-letter/sandbox`, { noAck: true });
      expect(got).not.toBe(false);
      return got as Exclude<typeof got, false>;
    }, patience);
    expect(letter.content.toString()).toBe('"poison"');
    expect(letter.fields.routingKey).toBe(keyOf(topic));
    expect(letter.properties.headers).toMatchObject({
      clientId: "agent",
      "x-first-death-reason": reason,
    });
  });

  test("that is put back as it was is a new call", async () => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect(["echo"], never);
    await using operator = await connectOperator(node().url);
    const headers = { "x-delivery-count": 4, "x-acquired-count": 4 };
    operator.channel.publish(namespace, keyOf(invokeTopic(namespace, "echo")), Buffer.from("1"), {
      headers,
    });
    const deliveries = pull(session);
    for (const deliveryCount of [1, 2, 3]) {
      const delivery = await deliveries.next();
      expect(delivery).toMatchObject({ deliveryCount, properties: {} });
      await delivery.settle("failed");
    }
  });
});

describe("an answer", () => {
  test("is unroutable when its agent is gone", async () => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect([], never);
    const answer = { topic: `${namespace}/answers/1`, payload: Buffer.from("1") };
    // Newer servers refuse, for a moment, what is published while the queue of an agent goes: not
    // every time.
    for (let agents = 0; agents < 10; agents++) {
      {
        await using agent = await connectAmqpPeer(node().url, namespace);
        const heard = await agent.listen(`${namespace}/answers/>`);
        expect(await session.publish(answer, never)).toBe("confirmed");
        expect((await heard()).payload).toBe("1");
      }
      await session.publish(answer, never);
    }
    expect(await session.publish(answer, never)).toBe("unroutable");
  });

  test("that one queue does not take is sent again, marked, and fails when that does not help", async () => {
    const namespace = newNamespace();
    await using session = await amqpBroker({ url: node().url, namespace }).connect([], never);
    await using operator = await connectOperator(node().url);
    const topic = `${namespace}/answers/1`;
    const { queue } = await operator.channel.assertQueue("", {
      exclusive: true,
      durable: false,
      maxLength: 1,
      arguments: { "x-overflow": "reject-publish" },
    });
    await operator.channel.bindQueue(queue, namespace, keyOf(topic));
    await using subscription = await session.subscribe(topic, never);
    const heard = hear(subscription);
    const send = (text: string) => session.publish({ topic, payload: Buffer.from(text) }, never);
    const next = async (): Promise<readonly [string, string | undefined]> => {
      const message = await heard.next();
      return [textOf(message), message.properties["resent"]];
    };
    expect(await send("fills it")).toBe("confirmed");
    await expect(send("refused")).rejects.toMatchObject({ transient: true });
    await operator.channel.purgeQueue(queue);
    expect(await send("taken")).toBe("confirmed");
    expect(await next()).toEqual(["fills it", undefined]);
    expect(await next()).toEqual(["refused", undefined]);
    for (let again = 0; again < 3; again++) expect(await next()).toEqual(["refused", "true"]);
    expect(await next()).toEqual(["taken", undefined]);
  });

  test("to a topic that no routing key can hold is refused, and the session goes on", async () => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect([], never);
    const tooLong = { topic: `a/${".".repeat(90)}`, payload: Buffer.from("1") };
    await expect(session.publish(tooLong, never)).rejects.toMatchObject({ transient: false });
    const answer = { topic: "a/b", payload: Buffer.from("1") };
    expect(await session.publish(answer, never)).toBe("unroutable");
  });

  test("with more properties than a frame holds is refused, and the session goes on", async () => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect([], never);
    const answer = { topic: "a/b", payload: Buffer.from("1") };
    const properties = { large: "x".repeat(200_000) };
    await expect(session.publish({ ...answer, properties }, never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
    });
    expect(await session.publish(answer, never)).toBe("unroutable");
  });
});

describe("a subscription", () => {
  test.each(["a/b*/c", "*b", "a/>/c", "a/**"])("to %s is refused", async (pattern) => {
    const broker = amqpBroker({ url: node().url, namespace: newNamespace() });
    await using session = await broker.connect([], never);
    await expect(session.subscribe(pattern, never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.stringContaining(`cannot subscribe to ${pattern}`),
    });
    await using subscription = await session.subscribe("a/*", never);
    expect(subscription.dropped).toBe(0);
  });

  test.each(["alone", "with its session"])("that ends %s costs others no message", async (how) => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect([], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using kept = await session.subscribe(`${namespace}/>`, never);
    const texts = Array.from({ length: 20 }, (_, n) => String(n));
    for (const text of texts) {
      await using leaving = await broker.connect([], never);
      const subscription = await leaving.subscribe(`${namespace}/>`, never);
      await (how === "alone" ? subscription : leaving)[Symbol.asyncDispose]();
      // Would be refused by newer servers, and not be sent again.
      await peer.publish(`${namespace}/news`, text);
    }
    const heard = hear(kept);
    for (const text of texts) expect(textOf(await heard.next())).toBe(text);
  });
});

test("headers of any type become properties", async () => {
  const namespace = newNamespace();
  const broker = amqpBroker({ url: node().url, namespace });
  await using session = await broker.connect(["echo"], never);
  await using operator = await connectOperator(node().url);
  const headers = {
    text: "é",
    bytes: Buffer.from("raw é"),
    number: 1.5,
    large: 1_795_200_128_599,
    flag: true,
    nothing: null,
    list: [1, "a"],
    table: { a: 1 },
    time: { "!": "timestamp", value: 1_795_200_128 },
    "x-own": "kept",
  };
  const key = keyOf(invokeTopic(namespace, "echo"));
  operator.channel.publish(namespace, key, Buffer.from("1"), { headers });
  const deliveries = pull(session);
  const delivery = await deliveries.next();
  const properties = {
    text: "é",
    bytes: "raw é",
    number: "1.5",
    large: "1795200128599",
    flag: "true",
    list: '[1,"a"]',
    table: '{"a":1}',
    time: "1795200128",
    "x-own": "kept",
  };
  expect(delivery.properties).toEqual(properties);
  await delivery.settle("failed");
  expect((await deliveries.next()).properties).toEqual(properties);
});
