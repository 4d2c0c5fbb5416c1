/**
 * How the agent of a chaos connects to RabbitMQ.
 */
import { once } from "node:events";
import { type ConfirmChannel, connect } from "amqplib";
import { keyOf } from "../../../conformance/peers/amqp-peer.ts";
import type { AgentConnection, AgentDial, AgentInbox, RequestMessage } from "../agent.ts";

/** To a broker at this URL. */
export function amqpDial(url: string): AgentDial {
  return async (inbox) => {
    await using stack = new AsyncDisposableStack();
    const connection = await connect(url);
    connection.on("error", () => undefined);
    stack.defer(() => connection.close().catch(() => undefined));
    const lost = once(connection, "close");
    const channel = await connection.createConfirmChannel();
    channel.on("error", () => undefined);
    const returned = new Set<string>();
    // Comes before the confirmation.
    channel.on("return", ({ properties }) => returned.add(String(properties.messageId)));
    await consume(channel, inbox);
    const owned = stack.move();
    let messages = 0;
    return {
      lost,
      async send(message) {
        const messageId = `${++messages}`;
        await publish(channel, inbox.namespace, message, messageId);
        return returned.delete(messageId) ? "unroutable" : "confirmed";
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    } satisfies AgentConnection;
  };
}

async function consume(
  channel: ConfirmChannel,
  { namespace, queue, pattern, hear }: AgentInbox,
): Promise<void> {
  await channel.assertExchange(namespace, "topic", { durable: true });
  await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
  await channel.bindQueue(queue, namespace, `${keyOf(pattern.replace(/\/>$/, ""))}.#`);
  await channel.consume(queue, (message) => {
    if (message === null) return;
    hear(message.fields.routingKey.replaceAll(".", "/"), message.content);
    channel.ack(message);
  });
}

function publish(
  channel: ConfirmChannel,
  exchange: string,
  { topic, payload, properties }: RequestMessage,
  messageId: string,
): Promise<void> {
  const options = { persistent: true, mandatory: true, messageId, headers: properties };
  return new Promise((resolve, reject) => {
    channel.publish(exchange, keyOf(topic), payload, options, (error) => {
      if (error === null || error === undefined) resolve();
      else reject(error as Error);
    });
  });
}
