/**
 * What the broker refuses of one queue, of one message or of a client concerns nothing else.
 */
import { describe, expect, test, vi } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/peers/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import {
  addUser,
  connectOperator,
  never,
  newNamespace,
  suspendQueue,
  useRabbitMQ,
} from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const node = useRabbitMQ();

const refused = "queue.consume_refused";
const queues = new Map([
  ["default", 8],
  ["heavy", 8],
]);
const queueOf = (tool: string): string => (tool === "heavy" ? "heavy" : "default");

describe("a further queue that is there with other arguments", () => {
  test("is consumed as soon as it is gone, and keeps no other waiting", async () => {
    const namespace = newNamespace();
    const url = node().url;
    const log = keptLog();
    await using operator = await connectOperator(url);
    const queue = `${namespace}/q/sandbox/default/heavy`;
    await operator.channel.assertQueue(queue, { durable: true });
    const broker = amqpBroker({ url, namespace, log, queues, queueOf });
    await using session = await broker.connect(["fine", "heavy"], never);
    await using peer = await connectAmqpPeer(url, namespace);
    const deliveries = pull(session);
    await peer.publish(invokeTopic(namespace, "fine"), "1");
    const running = await deliveries.next();
    expect(log.factsOf(refused)[0]).toMatchObject({
      queue,
      reason: expect.stringMatching(/inequivalent arg.*delete it when it is empty/s),
    });
    expect(session.notReadyReasons).toEqual([]);
    await operator.channel.deleteQueue(queue);
    await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
    await peer.publish(invokeTopic(namespace, "heavy"), "2");
    expect(textOf(await deliveries.next())).toBe("2");
    await running.settle("accepted");
  });
});

describe("a further queue that does not answer", () => {
  test(
    "delays the connection and does not prevent it, and is consumed as soon as it answers",
    { tags: "full", timeout: 120_000 },
    async () => {
      const namespace = newNamespace();
      const log = keptLog();
      const broker = amqpBroker({ url: node().url, namespace, log, queues, queueOf });
      {
        await using _queues = await broker.connect(["fine", "heavy"], never);
      }
      await using stuck = await suspendQueue(node(), `${namespace}/q/sandbox/default/heavy`);
      // Takes as long as the broker may take for the answer to a command.
      await using session = await broker.connect(["fine", "heavy"], never);
      await using peer = await connectAmqpPeer(node().url, namespace);
      const deliveries = pull(session);
      await peer.publish(invokeTopic(namespace, "fine"), "1");
      expect(textOf(await deliveries.next())).toBe("1");
      expect(log.factsOf(refused)[0]).toMatchObject({
        reason: expect.stringContaining("no answer within 30000 ms"),
      });
      await stuck[Symbol.asyncDispose]();
      await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
      await peer.publish(invokeTopic(namespace, "heavy"), "2");
      expect(textOf(await deliveries.next())).toBe("2");
    },
  );
});

describe("the only queue", () => {
  test(
    "that is lost and refused is named as what is missing until it is accepted, and answers go out",
    { tags: "full", timeout: 120_000 },
    async () => {
      const namespace = newNamespace();
      const user = "forsaken";
      const url = await addUser(node(), user, [".*", ".*", ".*"]);
      await using operator = await connectOperator(node().url);
      await using session = await amqpBroker({ url, namespace }).connect(["only"], never);
      expect(session.notReadyReasons).toEqual([]);
      const answer = { topic: `${namespace}/answers`, payload: Buffer.from("1") };
      expect(await session.publish(answer, never)).toBe("unroutable");
      await node().control("set_permissions", user, "^$", ".*", ".*");
      await operator.channel.deleteQueue(`${namespace}/q/sandbox/default`);
      await vi.waitFor(
        () => expect(session.notReadyReasons).toEqual(["no queue of the group can be consumed"]),
        patience,
      );
      expect(await session.publish(answer, never)).toBe("unroutable");
      await node().control("set_permissions", user, ".*", ".*", ".*");
      // The routes are looked at every 15 seconds.
      const twoLooks = { ...patience, timeout: 60_000 };
      await vi.waitFor(() => expect(session.notReadyReasons).toEqual([]), twoLooks);
    },
  );

  test("is missed by no session that takes no more calls", async () => {
    const namespace = newNamespace();
    const broker = amqpBroker({ url: node().url, namespace });
    await using session = await broker.connect(["only"], never);
    await using operator = await connectOperator(node().url);
    await session.pause();
    await operator.channel.deleteQueue(`${namespace}/q/sandbox/default`);
    const answer = { topic: `${namespace}/answers`, payload: Buffer.from("1") };
    expect(await session.publish(answer, never)).toBe("unroutable");
    expect(session.notReadyReasons).toEqual([]);
  });
});

describe("a further queue that the user may not read", () => {
  test("keeps no other waiting, and its refusal is logged", { tags: "full" }, async () => {
    const namespace = newNamespace();
    const log = keptLog();
    const url = await addUser(node(), "half-blind", [".*", ".*", "^(?!.*heavy$).*$"]);
    const broker = amqpBroker({ url, namespace, log, queues, queueOf });
    await using session = await broker.connect(["fine", "heavy"], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    const deliveries = pull(session);
    for (const call of ["1", "2"]) {
      await peer.publish(invokeTopic(namespace, "fine"), call);
      const delivery = await deliveries.next();
      expect(textOf(delivery)).toBe(call);
      await delivery.settle("accepted");
      // It is tried again, which must not disturb the others either.
      const times = Number(call);
      await vi.waitFor(() => expect(log.factsOf(refused).length).toBeGreaterThan(times), patience);
    }
    expect(log.factsOf(refused)[0]).toMatchObject({
      queue: `${namespace}/q/sandbox/default/heavy`,
      reason: expect.stringContaining("ACCESS_REFUSED"),
    });
    expect(JSON.stringify(log.factsOf(refused))).not.toContain("hush");
  });
});

test(
  "an answer to a topic that the user may not write to fails alone",
  { tags: "full" },
  async () => {
    const namespace = newNamespace();
    const url = await addUser(node(), "mute", [".*", ".*", ".*"]);
    const allowed = "^test\\.place.*\\.allowed\\..*$";
    await using session = await amqpBroker({ url, namespace }).connect([], never);
    // Newer servers want the exchange to be there.
    await node().control("set_topic_permissions", "mute", namespace, allowed, ".*");
    const heard = await session.subscribe(`${namespace}/allowed/>`, never);
    const answer = (topic: string): { topic: string; payload: Buffer } => ({
      topic: `${namespace}/${topic}`,
      payload: Buffer.from(topic),
    });
    const numbers = Array.from({ length: 20 }, (_, n) => `allowed/${n}`);
    const before = numbers.slice(0, 10).map((topic) => session.publish(answer(topic), never));
    const refused = session.publish(answer("forbidden/1"), never);
    const after = numbers.slice(10).map((topic) => session.publish(answer(topic), never));
    await expect(refused).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("forbidden"),
    });
    const outcomes = await Promise.all([...before, ...after]);
    expect(new Set(outcomes)).toEqual(new Set(["confirmed"]));
    const arrived: string[] = [];
    for await (const { payload, properties } of heard) {
      const text = Buffer.from(payload).toString();
      // A second copy says that it may be one.
      if (arrived.includes(text)) expect(properties["resent"]).toBe("true");
      else arrived.push(text);
      if (arrived.length === numbers.length) break;
    }
    expect(arrived).toEqual(numbers);
    expect(await session.publish(answer("allowed/later"), never)).toBe("confirmed");
  },
);

describe("a client that serves nothing", () => {
  test("needs no permission to declare what workers use", { tags: "full" }, async () => {
    const namespace = newNamespace();
    const url = await addUser(node(), "caller", [
      "^amq\\.gen-.*$",
      `^(${namespace}|amq\\.gen-.*)$`,
      `^(${namespace}|amq\\.gen-.*)$`,
    ]);
    await expect(ToolClient.connect({ broker: url, namespace })).rejects.toThrow(/ACCESS_REFUSED/);
    await using worker = await amqpBroker({ url: node().url, namespace }).connect(["echo"], never);
    await using client = await ToolClient.connect({ broker: url, namespace });
    const calling = client.invoke("echo", { n: 1 });
    const aborted = expect(calling).rejects.toThrow();
    const call = await pull(worker).next();
    expect(call.topic).toBe(invokeTopic(namespace, "echo"));
    await call.settle("accepted");
    await client[Symbol.asyncDispose]();
    await aborted;
  });

  test("makes no queue for dead letters", async () => {
    const namespace = newNamespace();
    await using _session = await amqpBroker({ url: node().url, namespace }).connect([], never);
    await using operator = await connectOperator(node().url);
    const looking = operator.channel.checkQueue(`${namespace}/q/dead-letter/sandbox`);
    await expect(looking).rejects.toThrow("NOT_FOUND");
  });
});
