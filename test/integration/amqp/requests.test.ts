/**
 * Calls as clients of AMQP make them, and what comes between them and their queues.
 */
import { type AddressInfo, type Socket, createServer } from "node:net";
import type { ConsumeMessage } from "amqplib";
import { describe, expect, test, vi } from "vitest";
import { routeCheckMs } from "../../../worker/broker/routes.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { keyOf } from "../../conformance/peers/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { addUser, connectOperator, never, newNamespace, useRabbitMQ } from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const node = useRabbitMQ();

/** RabbitMQ's direct reply-to: a queue that is no queue, for one consumer. */
const directReplyTo = "amq.rabbitmq.reply-to";

describe("a call with reply_to and correlation_id", () => {
  test("is answered to that queue, under that id", async () => {
    const namespace = newNamespace();
    const url = node().url;
    await using session = await amqpBroker({ url, namespace }).connect(["tool"], never);
    await using client = await connectOperator(url);
    const answered = Promise.withResolvers<ConsumeMessage | null>();
    await client.channel.consume(directReplyTo, answered.resolve, { noAck: true });
    const key = keyOf(invokeTopic(namespace, "tool"));
    const options = { replyTo: directReplyTo, correlationId: "mine" };
    client.channel.publish(namespace, key, Buffer.from("{}"), options);
    const delivery = await pull(session).next();
    expect(delivery.correlationId).toBe("mine");
    const answer = {
      topic: delivery.properties["replyTo"]!,
      payload: Buffer.from("done"),
      correlationId: "mine",
    };
    expect(await session.publish(answer, never)).toBe("confirmed");
    const message = await answered.promise;
    expect(message?.content.toString()).toBe("done");
    expect(message?.properties.correlationId).toBe("mine");
    await delivery.settle("accepted");
  });

  test("is answered by its header replyTo where it has one", async () => {
    const namespace = newNamespace();
    const url = node().url;
    await using session = await amqpBroker({ url, namespace }).connect(["tool"], never);
    await using client = await connectOperator(url);
    const key = keyOf(invokeTopic(namespace, "tool"));
    const options = { replyTo: "a-queue", headers: { replyTo: "a/topic" } };
    client.channel.publish(namespace, key, Buffer.from("{}"), options);
    const delivery = await pull(session).next();
    expect(delivery.properties["replyTo"]).toBe("a/topic");
  });

  test("fails alone where the worker may not publish to queues", { tags: "full" }, async () => {
    const namespace = newNamespace();
    const url = await addUser(node(), "no-direct-replies", [".*", "^(?!amq\\.default).*", ".*"]);
    await using session = await amqpBroker({ url, namespace }).connect(["tool"], never);
    const payload = Buffer.from("{}");
    const refused = session.publish({ topic: "amqp-queue:somebody", payload }, never);
    const others = [1, 2, 3].map((n) => session.publish({ topic: `other/${n}`, payload }, never));
    await expect(refused).rejects.toMatchObject({ transient: false });
    expect(await Promise.all(others)).toEqual(["unroutable", "unroutable", "unroutable"]);
  });
});

test("hosts that cannot be reached are passed over", async () => {
  const namespace = newNamespace();
  const [closed] = await freePorts(1);
  const url = node().url.replace("@", `@127.0.0.1:${closed},`);
  await using session = await amqpBroker({ url, namespace }).connect(["tool"], never);
  expect(session.notReadyReasons).toEqual([]);
});

test("a host that refuses the login keeps nobody from the next one", async () => {
  const namespace = newNamespace();
  await using foreign = await startForeignServer();
  const refusing = `amqp://guest:guest@127.0.0.1:${foreign.port}`;
  const alone = amqpBroker({ url: refusing, namespace }).connect(["tool"], never);
  await expect(alone).rejects.toMatchObject({ transient: false });
  const url = node().url.replace("@", `@127.0.0.1:${foreign.port},`);
  await using session = await amqpBroker({ url, namespace }).connect(["tool"], never);
  expect(session.notReadyReasons).toEqual([]);
});

/** Lets in by a mechanism only that nobody knows, which is a refusal for good. */
async function startForeignServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const text = (value: string): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(value.length);
    return Buffer.concat([length, Buffer.from(value)]);
  };
  // Connection.Start of AMQP 0-9-1, version 0-9, without properties.
  const method = Buffer.from([0, 10, 0, 10, 0, 9, 0, 0, 0, 0]);
  const payload = Buffer.concat([method, text("UNKNOWN"), text("en_US")]);
  const header = Buffer.from([1, 0, 0, 0, 0, 0, payload.length]);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("data", () => socket.write(Buffer.concat([header, payload, Buffer.of(0xce)])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { port, [Symbol.asyncDispose]: close };
}

describe("what an operator removes is made again:", () => {
  async function prepare() {
    const namespace = newNamespace();
    const url = node().url;
    const [clock, log] = [new HandClock(), keptLog()];
    const stack = new AsyncDisposableStack();
    const broker = amqpBroker({ url, namespace, clock, log });
    const session = stack.use(await broker.connect(["tool"], never));
    const operator = stack.use(await connectOperator(url));
    const key = keyOf(invokeTopic(namespace, "tool"));
    const publish = (text: string): boolean =>
      operator.channel.publish(namespace, key, Buffer.from(text));
    return { stack, namespace, session, operator, key, publish, clock, log };
  }

  test("a binding", async () => {
    const { stack, namespace, session, operator, key, publish, clock } = await prepare();
    await using _owned = stack;
    const queue = `${namespace}/q/sandbox/default`;
    await operator.channel.unbindQueue(queue, namespace, key);
    clock.advance(routeCheckMs);
    const deliveries = pull(session);
    const next = deliveries.next();
    const calls = setInterval(() => publish("call"), 50);
    expect(textOf(await next)).toBe("call");
    clearInterval(calls);
  });

  test("the exchange", async () => {
    const { stack, namespace, session, operator, publish, clock, log } = await prepare();
    await using _owned = stack;
    await operator.channel.deleteExchange(namespace);
    clock.advance(routeCheckMs);
    await vi.waitFor(() => expect(log.events).toContain("exchange.missing"), patience);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    expect(session.notReadyReasons).toEqual([]);
    const next = pull(session).next();
    publish("call");
    expect(textOf(await next)).toBe("call");
  });

  test("the exchange, of another kind, keeps the worker from being ready until it goes", async () => {
    const { stack, namespace, session, operator, clock, log } = await prepare();
    await using _owned = stack;
    await operator.channel.deleteExchange(namespace);
    await operator.channel.assertExchange(namespace, "fanout");
    clock.advance(routeCheckMs);
    const isNotReady = (): void =>
      expect(session.notReadyReasons).toEqual(["exchange or bindings are missing"]);
    await vi.waitFor(isNotReady, patience);
    await operator.channel.deleteExchange(namespace);
    clock.advance(routeCheckMs);
    await vi.waitFor(() => expect(session.notReadyReasons).toEqual([]), patience);
    expect(log.events).toContain("routes.restore_failed");
  });
});
