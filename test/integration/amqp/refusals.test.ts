/**
 * What the broker refuses of one queue, of one message or of a client concerns nothing else.
 */
import { describe, expect, test, vi } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker, keptLog } from "../../support/rabbitmq-options.ts";
import {
  addUser,
  connectOperator,
  never,
  newNamespace,
  suspendQueue,
  useRabbitMQ,
} from "./node.ts";

const node = useRabbitMQ();

const cannotBeUsed = "queue cannot be used";

describe("a queue that is there with other arguments", () => {
  test("leaves its tool unserved until it is gone, and all others served", async () => {
    const namespace = newNamespace();
    const url = node().url;
    const log = keptLog();
    await using operator = await connectOperator(url);
    const queue = `${namespace}/q/sandbox/tool/taken`;
    await operator.channel.assertQueue(queue, { durable: true });
    const broker = amqpBroker({ url, namespace, log });
    await using session = await broker.connect(["fine", "taken"], never);
    await using peer = await connectAmqpPeer(url, namespace);
    const deliveries = pull(session);
    await peer.publish(invokeTopic(namespace, "fine"), "1");
    const running = await deliveries.next();
    expect(log.factsOf(cannotBeUsed)[0]).toMatchObject({
      tools: ["taken"],
      queue,
      code: 406,
      err: { message: expect.stringMatching(/inequivalent arg.*delete it when it is empty/s) },
    });
    await operator.channel.deleteQueue(queue);
    await vi.waitFor(() => expect(log.events).toContain("queue can be used again"), patience);
    await peer.publish(invokeTopic(namespace, "taken"), "2");
    expect(textOf(await deliveries.next())).toBe("2");
    await running.settle("accepted");
  });

  test("is told to who wants to serve the tool later, and the session goes on", async () => {
    const namespace = newNamespace();
    const url = node().url;
    await using operator = await connectOperator(url);
    await operator.channel.assertQueue(`${namespace}/q/sandbox/tool/taken`, { durable: true });
    await using session = await amqpBroker({ url, namespace }).connect(["fine"], never);
    await using peer = await connectAmqpPeer(url, namespace);
    const deliveries = pull(session);
    await peer.publish(invokeTopic(namespace, "fine"), "1");
    const running = await deliveries.next();
    await expect(session.serve("taken", never)).rejects.toMatchObject({ transient: false });
    await running.settle("accepted");
    await peer.publish(invokeTopic(namespace, "fine"), "2");
    expect(await deliveries.next()).toMatchObject({
      payload: Buffer.from("2"),
      redelivered: false,
    });
  });
});

describe("a queue that does not answer", () => {
  test(
    "keeps no other waiting, and is served as soon as it answers",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      const log = keptLog();
      const broker = amqpBroker({ url: node().url, namespace, log });
      {
        await using _queues = await broker.connect(["fine", "stuck"], never);
      }
      await using stuck = await suspendQueue(node(), `${namespace}/q/sandbox/tool/stuck`);
      const startedAtMs = performance.now();
      await using session = await broker.connect(["fine", "stuck"], never);
      // The broker may take 30 seconds for the answer to a command.
      expect(performance.now() - startedAtMs).toBeLessThan(20_000);
      await using peer = await connectAmqpPeer(node().url, namespace);
      const deliveries = pull(session);
      await peer.publish(invokeTopic(namespace, "fine"), "1");
      expect(textOf(await deliveries.next())).toBe("1");
      expect(log.factsOf(cannotBeUsed)[0]).toMatchObject({ tools: ["stuck"] });
      await stuck[Symbol.asyncDispose]();
      await vi.waitFor(() => expect(log.events).toContain("queue can be used again"), patience);
      await peer.publish(invokeTopic(namespace, "stuck"), "2");
      expect(textOf(await deliveries.next())).toBe("2");
    },
  );
});

describe("the only queue", () => {
  test(
    "that is lost and cannot be had again is named as what is missing, until it is had",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      const user = "forsaken";
      const url = await addUser(node(), user, [".*", ".*", ".*"]);
      await using operator = await connectOperator(node().url);
      await using session = await amqpBroker({ url, namespace }).connect(["only"], never);
      expect(session.impediments).toEqual([]);
      await node().control("clear_permissions", user);
      await operator.channel.deleteQueue(`${namespace}/q/sandbox/tool/only`);
      await vi.waitFor(
        () => expect(session.impediments).toEqual(["no queue of the tools can be used"]),
        patience,
      );
      await node().control("set_permissions", user, ".*", ".*", ".*");
      await vi.waitFor(() => expect(session.impediments).toEqual([]), patience);
      await session.leave("only", never);
      expect(session.impediments).toEqual([]);
    },
  );

  test("that is missing for a minute ends the session, so that connecting is tried anew", async () => {
    const namespace = newNamespace();
    const clock = new HandClock();
    const log = keptLog();
    await using operator = await connectOperator(node().url);
    const broker = amqpBroker({ url: node().url, namespace, clock, log });
    await using session = await broker.connect(["only"], never);
    const queue = `${namespace}/q/sandbox/tool/only`;
    const sleepers = ["the next look at bindings", "the watch", "the next try"].length;
    const missing = async (): Promise<void> => {
      await operator.channel.deleteQueue(queue);
      await vi.waitFor(() => expect(clock.sleeping).toBe(sleepers), patience);
    };
    await missing();
    clock.advance(59_000);
    await vi.waitFor(() => expect(log.events).toContain("queue can be used again"), patience);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    await missing();
    await operator.channel.assertQueue(queue, { durable: true });
    clock.advance(59_000);
    await vi.waitFor(
      () => expect(log.factsOf(cannotBeUsed).at(-1)).toMatchObject({ code: 406 }),
      patience,
    );
    await vi.waitFor(() => expect(clock.sleeping).toBe(sleepers), patience);
    expect(session.impediments).toEqual(["no queue of the tools can be used"]);
    clock.advance(1_000);
    expect(await session.closed).toMatchObject({
      reason: "lost",
      cause: { message: "No queue of the tools could be used for 60 seconds", transient: true },
    });
    await expect(broker.connect(["only"], never)).rejects.toMatchObject({ transient: false });
  });

  test("is missed by no session that takes no more calls", async () => {
    const namespace = newNamespace();
    const clock = new HandClock();
    const broker = amqpBroker({ url: node().url, namespace, clock });
    await using session = await broker.connect(["only"], never);
    await session.pause();
    expect(session.impediments).toEqual([]);
    clock.advance(60_000);
    const answer = { topic: `${namespace}/answers`, payload: Buffer.from("1") };
    expect(await session.publish(answer, never)).toBe("unroutable");
  });
});

describe("a queue that the user may not read", () => {
  test("leaves its tool unserved, and all others served", { tags: "full" }, async () => {
    const namespace = newNamespace();
    const log = keptLog();
    const url = await addUser(node(), "half-blind", [".*", ".*", "^(?!.*secret$).*$"]);
    const broker = amqpBroker({ url, namespace, log });
    await using session = await broker.connect(["fine", "secret"], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    const deliveries = pull(session);
    for (const call of ["1", "2"]) {
      await peer.publish(invokeTopic(namespace, "fine"), call);
      const delivery = await deliveries.next();
      expect(textOf(delivery)).toBe(call);
      await delivery.settle("accepted");
      // It is tried again, which must not disturb the others either.
      const times = Number(call);
      await vi.waitFor(
        () => expect(log.factsOf(cannotBeUsed).length).toBeGreaterThan(times),
        patience,
      );
    }
    expect(log.factsOf(cannotBeUsed)[0]).toMatchObject({ tools: ["secret"], code: 403 });
    expect(JSON.stringify(log.factsOf(cannotBeUsed))).not.toContain("hush");
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
