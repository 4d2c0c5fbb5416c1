/**
 * One listener: a queue of its own that nobody shares, and that the broker removes with it.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import { BrokerError, type BrokerSubscription, type HeardMessage } from "../broker.ts";
import { SubscriptionBuffer } from "../subscription-buffer.ts";
import type { AmqpConnection } from "./connection.ts";
import { toProperties } from "./messages.ts";
import { bindingKey, topicOf } from "./routing-keys.ts";

/** Keeps what was heard until it is pulled. */
export class AmqpSubscription implements BrokerSubscription {
  readonly #connection: AmqpConnection;
  readonly #channel: Channel;
  readonly #heard = new SubscriptionBuffer<HeardMessage>();
  #isDisposed = false;

  private constructor(connection: AmqpConnection, channel: Channel) {
    this.#connection = connection;
    this.#channel = channel;
    connection.ended.addEventListener("abort", this.#end, { once: true });
  }

  /**
   * Subscribes. Throws BrokerError, for patterns that RabbitMQ cannot express too; leaves nothing
   * open then.
   */
  static async open(
    connection: AmqpConnection,
    exchange: string,
    pattern: string,
    signal: AbortSignal,
  ): Promise<AmqpSubscription> {
    const key = bindingKey(pattern);
    await using stack = new AsyncDisposableStack();
    const channel = await connection.openChannel(signal);
    const subscription = stack.use(new AmqpSubscription(connection, channel));
    const subscribing = subscription.#subscribe(exchange, key);
    await connection.answered(subscribing, `subscribe to ${pattern}`, signal);
    connection.rely(channel);
    stack.move();
    return subscription;
  }

  get dropped(): number {
    return this.#heard.dropped;
  }

  [Symbol.asyncIterator](): AsyncIterator<HeardMessage> {
    return this.#heard[Symbol.asyncIterator]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#heard[Symbol.dispose]();
    this.#connection.ended.removeEventListener("abort", this.#end);
    await this.#connection.release(this.#channel);
  }

  async #subscribe(exchange: string, key: string): Promise<void> {
    const { queue } = await this.#channel.assertQueue("", {
      exclusive: true,
      autoDelete: true,
      durable: false,
    });
    // RabbitMQ 4.3 refuses messages, for all their queues, while one of these goes with its
    // channel.
    this.#connection.beforeRelease(this.#channel, () => this.#channel.deleteQueue(queue));
    await this.#channel.bindQueue(queue, exchange, key);
    await this.#channel.consume(queue, (message) => this.#receive(message), { noAck: true });
  }

  #receive(message: ConsumeMessage | null): void {
    if (this.#isDisposed) return;
    if (message === null) {
      const cause = new BrokerError("The broker removed the queue of a subscription", {
        transient: true,
      });
      return this.#connection.lose(cause);
    }
    this.#heard.offer({
      topic: topicOf(message.fields.routingKey),
      payload: message.content,
      properties: toProperties(message.properties.headers),
    });
  }

  readonly #end = (): void => this.#heard.end();
}
