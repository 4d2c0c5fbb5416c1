/**
 * An agent on RabbitMQ, with nothing but amqplib: it publishes to the topic exchange of a
 * namespace, and listens with queues of its own.
 */
import { type ConsumeMessage, connect } from "amqplib";
import type { HeardMessage, Peer } from "../broker.ts";

const escapes = { ".": "%2E", "*": "%2A", "#": "%23", "%": "%25" } as const;

/** `a/b.c` as a routing key. */
export function keyOf(topic: string): string {
  const escape = (special: string): string => escapes[special as keyof typeof escapes];
  const levels = topic.split("/").map((level) => level.replace(/[.*#%]/g, escape));
  return levels.join(".");
}

function topicOf(key: string): string {
  return key.split(".").map(decodeURIComponent).join("/");
}

function bindingOf(pattern: string): string {
  return keyOf(pattern).replaceAll("%2A", "*").replace(/>$/, "*.#");
}

/** Connects an agent. The caller owns it. */
export async function connectAmqpPeer(
  url: string,
  exchange: string,
): Promise<Peer & AsyncDisposable> {
  const connection = await connect(url);
  // Tests that break connections learn of it where it matters to them.
  connection.on("error", () => {});
  const publishing = await connection.createConfirmChannel();
  await publishing.assertExchange(exchange, "topic", { durable: true });
  return {
    publish(topic, payload, properties = {}) {
      const options = { persistent: true, headers: properties };
      return new Promise((resolve, reject) => {
        publishing.publish(exchange, keyOf(topic), Buffer.from(payload), options, (error) => {
          if (error) reject(error as Error);
          else resolve();
        });
      });
    },
    async listen(pattern) {
      const channel = await connection.createChannel();
      const { queue } = await channel.assertQueue("", { exclusive: true, durable: false });
      await channel.bindQueue(queue, exchange, bindingOf(pattern));
      const heard: HeardMessage[] = [];
      let arrived = Promise.withResolvers<void>();
      const hear = (message: ConsumeMessage | null): void => {
        if (message === null) return;
        heard.push(toHeard(message));
        arrived.resolve();
        arrived = Promise.withResolvers();
      };
      await channel.consume(queue, hear, { noAck: true });
      return async () => {
        for (;;) {
          const message = heard.shift();
          if (message !== undefined) return message;
          await arrived.promise;
        }
      };
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

function toHeard({ fields, content, properties }: ConsumeMessage): HeardMessage {
  return {
    topic: topicOf(fields.routingKey),
    payload: content.toString(),
    properties: properties.headers ?? {},
  };
}
