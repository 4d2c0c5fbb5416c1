/**
 * A subscription: a private queue, which the broker removes with it.
 */
import type { ConsumeMessage } from "amqplib";
import { BrokerError, type BrokerSubscription, type HeardMessage } from "../broker.ts";
import { connectionLost } from "../connection-end.ts";
import { SubscriptionBuffer, maxWaitingMessages } from "../subscription-buffer.ts";
import type { AmqpConnection } from "./connection.ts";
import { type AnswerFields, answerProperties } from "./messages.ts";
import { bindingKey, topicOf } from "./routing-keys.ts";

export async function subscribe(
  connection: AmqpConnection,
  exchange: string,
  pattern: string,
  signal: AbortSignal,
): Promise<BrokerSubscription> {
  const key = bindingKey(pattern);
  await using stack = new AsyncDisposableStack();
  const channel = await connection.openChannel(signal);
  const release = (): Promise<void> => connection.release(channel);
  const heard = stack.use(
    new SubscriptionBuffer<HeardMessage>({ ended: connection.ended, release }),
  );
  const onMessage = (message: ConsumeMessage | null): void => {
    if (message !== null) return heard.offer(toHeard(message));
    if (!heard.isDisposed) connection.lose(queueRemoved());
  };
  const listen = async (): Promise<void> => {
    const options = { exclusive: true, autoDelete: true, durable: false };
    const { queue } = await channel.assertQueue("", { ...options, maxLength: maxWaitingMessages });
    // RabbitMQ 4.3 refuses messages, for all their queues, while one of these goes with its
    // channel.
    connection.beforeRelease(channel, () => channel.deleteQueue(queue));
    await channel.bindQueue(queue, exchange, key);
    await channel.consume(queue, onMessage, { noAck: true });
  };
  await connection.answered(listen(), `subscribe to ${pattern}`, signal);
  channel.on("error", (error: unknown) => connection.lose(connectionLost(error)));
  stack.move();
  return heard;
}

function toHeard({ fields, content, properties }: ConsumeMessage): HeardMessage {
  const topic = topicOf(fields.routingKey);
  return { topic, payload: content, ...answerProperties(properties as AnswerFields) };
}

function queueRemoved(): BrokerError {
  return new BrokerError("The broker removed the queue of a subscription", { transient: true });
}
