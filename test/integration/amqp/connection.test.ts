/**
 * The RabbitMQ adapter when the broker refuses it, takes no messages, takes calls back or goes away.
 */
import { describe, expect, test, vi } from "vitest";
import type { Broker } from "../../../worker/broker/broker.ts";
import { AmqpConnection } from "../../../worker/broker/amqp/connection.ts";
import type { BrokerLog } from "../../../worker/broker/log.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker, keptLog, noFiles } from "../../support/rabbitmq-options.ts";
import { freePorts } from "../../support/rabbitmq-ports.ts";
import { openCable } from "../../support/rabbitmq-proxy.ts";
import { addUser, connectOperator, never, newNamespace, useRabbitMQ } from "./node.ts";

/** The least that RabbitMQ accepts as its limit is less than what tests send. */
const maxMessageBytes = 1_000_000;

/** The method `basic.cancel` as amqplib knows it: class 60, method 30. */
const basicCancel = (60 << 16) | 30;

const node = useRabbitMQ(async () => ({ settings: [`max_message_size = ${maxMessageBytes}`] }));

/** As the worker uses the adapter. */
function lasting(broker: Broker, log: BrokerLog = keptLog()): ReturnType<typeof reconnecting> {
  return reconnecting(broker, { maxAttempts: 0, backoff: { baseMs: 20, capMs: 200 }, log });
}

/** The URL of the node with another user or virtual host. */
function urlWith(change: (url: URL) => void): string {
  const url = new URL(node().url);
  change(url);
  return url.href;
}

describe("a broker that refuses", () => {
  test.each([
    ["the password", (url: URL) => (url.password = "wrong"), /refused the login of guest: /],
    ["the user", (url: URL) => (url.username = "nobody"), /refused the login of nobody: /],
    ["the virtual host", (url: URL) => (url.pathname = "/none"), /refused the virtual host "none"/],
  ])("%s is reported at once, without the password", async (_what, change, message) => {
    const broker = amqpBroker({ url: urlWith(change), namespace: newNamespace() });
    const error: unknown = await lasting(broker)
      .connect([], never)
      .then(String, (reason: unknown) => reason);
    expect(error).toMatchObject({ name: "BrokerError", transient: false });
    expect(String(error)).toMatch(message);
    expect(String(error)).not.toMatch(/:(?:wrong|guest)@/);
  });

  test(
    "a login that it accepted before is tried until it accepts it again",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      const url = await addUser(node(), "renamed", [".*", ".*", ".*"]);
      const log = keptLog();
      const broker = lasting(amqpBroker({ url, namespace }), log);
      await using session = await broker.connect(["echo"], never);
      await node().control("change_password", "renamed", "another");
      await node().control("close_all_connections", "test");
      const call = { topic: invokeTopic(namespace, "echo"), payload: Buffer.from("1") };
      const publishing = session.publish(call, never);
      await vi.waitFor(
        () =>
          expect(log.factsOf("broker not reached")).toContainEqual(
            expect.objectContaining({
              reason: expect.stringContaining("refused the login"),
            }),
          ),
        patience,
      );
      await node().control("change_password", "renamed", "hush");
      expect(await publishing).toBe("confirmed");
      expect(textOf(await pull(session).next())).toBe("1");
    },
  );

  test(
    "to declare a queue is reported with the permission that is missing",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      await node().control("add_user", "reader", "secret");
      await node().control("set_permissions", "reader", "^none$", ".*", ".*");
      const url = urlWith((changed) => {
        changed.username = "reader";
        changed.password = "secret";
      });
      const connecting = amqpBroker({ url, namespace }).connect(["echo"], never);
      await expect(connecting).rejects.toMatchObject({
        transient: false,
        message: expect.stringMatching(
          /declare the exchange .*ACCESS_REFUSED.*Give the user the perm/s,
        ),
      });
    },
  );

  test("to answer at all is tried again", async () => {
    const [port] = await freePorts(1);
    const url = `amqp://guest:secret@127.0.0.1:${port}`;
    const connecting = amqpBroker({ url, namespace: newNamespace() }).connect([], never);
    await expect(connecting).rejects.toMatchObject({
      transient: true,
      message: `Cannot connect to the broker at amqp://127.0.0.1:${port}/%2F: ECONNREFUSED`,
    });
  });
});

test("connecting can be given up", async () => {
  const aborting = new AbortController();
  const reason = new Error("enough");
  const broker = amqpBroker({ url: node().url, namespace: newNamespace() });
  const connecting = broker.connect(["echo"], aborting.signal);
  aborting.abort(reason);
  await expect(connecting).rejects.toBe(reason);
});

describe("a message that is too large for the broker", () => {
  test("is refused alone: what was published with it arrives", async () => {
    const namespace = newNamespace();
    await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
      [],
      never,
    );
    await using peer = await connectAmqpPeer(node().url, namespace);
    const heard = await peer.listen(`${namespace}/answers/>`);
    const topic = `${namespace}/answers/1`;
    const large = { topic, payload: Buffer.alloc(maxMessageBytes + 1, "x") };
    const refused = session.publish(large, never);
    const published = session.publish({ topic, payload: Buffer.from("small") }, never);
    await expect(refused).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("larger than configured max size"),
    });
    expect(await published).toBe("confirmed");
    expect((await heard()).payload).toBe("small");
  });
});

describe("a channel that the broker closes", () => {
  test("ends the session, and the next one makes again what was missing", async () => {
    const namespace = newNamespace();
    await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
      ["echo"],
      never,
    );
    await using operator = await connectOperator(node().url);
    await operator.channel.deleteExchange(namespace);
    const call = { topic: invokeTopic(namespace, "echo"), payload: Buffer.from("1") };
    expect(await session.publish(call, never)).toBe("confirmed");
    expect(textOf(await pull(session).next())).toBe("1");
  });

  test(
    "for a call that was not settled in time is told, and the call goes to others",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      const log = keptLog();
      const set = (timeoutMs: number, tickMs: number): Promise<string> =>
        node().control(
          "eval",
          `application:set_env(rabbit, consumer_timeout, ${timeoutMs}),
         application:set_env(rabbit, channel_tick_interval, ${tickMs}).`,
        );
      await using stack = new AsyncDisposableStack();
      stack.defer(async () => void (await set(1_800_000, 60_000)));
      await set(500, 200);
      // Newer servers go by what the queue says, older ones by their configuration.
      const broker = amqpBroker({ url: node().url, namespace, log, consumerTimeoutSeconds: 0.5 });
      // Of one queue it has one consumer: what that loses does not come right back through another.
      await using session = await broker.connect(["slow"], never);
      await using peer = await connectAmqpPeer(node().url, namespace);
      const deliveries = pull(session);
      await peer.publish(invokeTopic(namespace, "slow"), "1");
      const late = await deliveries.next();
      await using other = await broker.connect(["slow"], never);
      const again = await pull(other).next();
      expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
      await again.settle("accepted");
      const told = "broker took unsettled calls back after its timeout";
      await vi.waitFor(() => expect(log.events).toContain(told), patience);
      await late.settle("accepted");
      // Only what came through the same queue is lost: others would not notice.
      await session.serve("quick", never);
      await peer.publish(invokeTopic(namespace, "quick"), "2");
      expect(await deliveries.next()).toMatchObject({ topic: invokeTopic(namespace, "quick") });
    },
  );
});

test("a consumer that is ended twice costs the connection nothing", async () => {
  const log = keptLog();
  const { url } = node();
  const options = { url, tls: noFiles, workerId: "worker", purpose: "receiving", log } as const;
  await using connection = await AmqpConnection.open(options, never);
  const channel = await connection.openChannel(never);
  // As the broker ends it, once for each call that was not settled in time.
  const ended = { id: basicCancel, channel: 1, fields: { consumerTag: "ended", nowait: true } };
  (channel as unknown as { accept(frame: object): void }).accept(ended);
  expect(await channel.checkExchange("amq.topic")).toBeDefined();
  expect(connection.ended.aborted).toBe(false);
});

test(
  "a broker that takes no messages has publishers wait, and says so",
  { tags: "full" },
  async () => {
    const namespace = newNamespace();
    const log = keptLog();
    await using session = await amqpBroker({ url: node().url, namespace, log }).connect([], never);
    const answer = { topic: "a/b", payload: Buffer.from("1") };
    await node().control("set_vm_memory_high_watermark", "0.000001");
    const publishing = Array.from({ length: 5 }, () => session.publish(answer, never));
    await vi.waitFor(() => expect(log.events).toEqual(["broker takes no messages"]), patience);
    const waiting = session.publish(answer, never);
    await node().control("set_vm_memory_high_watermark", "0.4");
    expect(new Set(await Promise.all([...publishing, waiting]))).toEqual(new Set(["unroutable"]));
    expect(log.events).toEqual(["broker takes no messages", "broker takes messages again"]);
  },
);

test(
  "a broker that takes no messages still learns what became of calls, and hands out others",
  { tags: "full" },
  async () => {
    const namespace = newNamespace();
    const topic = invokeTopic(namespace, "echo");
    const log = keptLog();
    const broker = amqpBroker({ url: node().url, namespace, log, maxUnsettled: 1 });
    await using session = await broker.connect(["echo"], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    for (const call of ["1", "2"]) await peer.publish(topic, call);
    const deliveries = pull(session);
    const first = await deliveries.next();
    await node().control("set_vm_memory_high_watermark", "0.000001");
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await node().control("set_vm_memory_high_watermark", "0.4")));
    const answer = { topic: `${namespace}/answers`, payload: Buffer.from("1") };
    const publishing = [session.publish(answer, never), session.publish(answer, never)];
    await vi.waitFor(() => expect(log.events).toEqual(["broker takes no messages"]), patience);
    await first.settle("accepted");
    const second = await deliveries.next();
    expect(textOf(second)).toBe("2");
    await second.settle("accepted");
    await stack.disposeAsync();
    expect(await Promise.all(publishing)).toEqual(["unroutable", "unroutable"]);
  },
);

test.each(["before", "while"])(
  "a connection that breaks %s it is closed is not waited for",
  async (when) => {
    await using cable = await openCable(node().port);
    const url = urlWith((changed) => (changed.port = String(cable.port)));
    const session = await amqpBroker({ url, namespace: newNamespace() }).connect(["echo"], never);
    const begunMs = performance.now();
    if (when === "before") cable.cut();
    const closing = session[Symbol.asyncDispose]();
    cable.cut();
    await closing;
    // Less than what a broker that is there may take to say goodbye.
    expect(performance.now() - begunMs).toBeLessThan(4_000);
  },
);

describe("through the reconnecting decorator", () => {
  test("calls come again when an operator closes all connections", async () => {
    const namespace = newNamespace();
    const topic = invokeTopic(namespace, "echo");
    await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
      ["echo"],
      never,
    );
    const deliveries = pull(session);
    {
      await using peer = await connectAmqpPeer(node().url, namespace);
      await peer.publish(topic, "1");
    }
    const former = await deliveries.next();
    await node().closeAllConnections();
    const again = await deliveries.next();
    expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
    await former.settle("accepted");
    await again.settle("accepted");
    await using peer = await connectAmqpPeer(node().url, namespace);
    await peer.publish(topic, "2");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test(
    "nothing is lost when the broker is restarted",
    { tags: "full", timeout: 180_000 },
    async () => {
      const namespace = newNamespace();
      const topic = invokeTopic(namespace, "echo");
      await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
        ["echo"],
        never,
      );
      const deliveries = pull(session);
      {
        await using peer = await connectAmqpPeer(node().url, namespace);
        await peer.publish(topic, "running");
        await peer.publish(topic, "waiting");
      }
      const running = await deliveries.next();
      expect(textOf(running)).toBe("running");
      await node().stop();
      await vi.waitFor(() => expect(session.connected).toBe(false), patience);
      const published = session.publish({ topic, payload: Buffer.from("meanwhile") }, never);
      await node().start();
      expect(await published).toBe("confirmed");
      const texts = new Set<string>();
      while (texts.size < 3) {
        const delivery = await deliveries.next();
        await delivery.settle("accepted");
        texts.add(textOf(delivery));
      }
      expect(texts).toEqual(new Set(["running", "waiting", "meanwhile"]));
    },
  );
});
