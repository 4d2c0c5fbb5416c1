/**
 * The RabbitMQ adapter when the broker refuses something or a connection breaks; disturbed.test.ts
 * has what disturbs all of a node.
 */
import { describe, expect, test, vi } from "vitest";
import { AmqpConnection } from "../../../worker/broker/amqp/connection.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/peers/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { amqpBroker, noFiles } from "../../support/brokers/rabbitmq-options.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { openCable } from "../../support/brokers/rabbitmq-proxy.ts";
import { maxMessageBytes } from "../../support/brokers/shared-rabbitmq.ts";
import { addUser, connectOperator, lasting, never, newNamespace, useRabbitMQ } from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

/** The method `basic.cancel` as amqplib knows it: class 60, method 30. */
const basicCancel = (60 << 16) | 30;

const node = useRabbitMQ();

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
    "to declare a queue is reported with the permission that is missing",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      const url = await addUser(node(), "declares-nothing", ["^none$", ".*", ".*"]);
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

test.each(["before", "while"])(
  "a connection that breaks %s it is closed is not waited for",
  async (when) => {
    await using cable = await openCable(node().port);
    const url = urlWith((changed) => (changed.port = String(cable.port)));
    const session = await amqpBroker({ url, namespace: newNamespace() }).connect(["echo"], never);
    // Only the cut ends the wait for the broker's part in closing.
    using _patience = vi.spyOn(AbortSignal, "timeout").mockReturnValue(never);
    if (when === "before") cable.cut();
    const closing = session[Symbol.asyncDispose]();
    cable.cut();
    await expect(closing).resolves.toBeUndefined();
  },
);
