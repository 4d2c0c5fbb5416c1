/**
 * One listener: a queue of its own that nobody shares, and that the broker removes with it.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import { BrokerError, type BrokerSubscription, type HeardMessage } from "../broker.ts";
import type { AmqpConnection } from "./connection.ts";
import { toProperties } from "./headers.ts";
import { bindingKey, topicOf } from "./routing-keys.ts";

/** Messages that may wait to be pulled; of more, the oldest go. */
const maxWaitingMessages = 10_000;

/** Keeps what was heard until it is pulled. */
export class AmqpSubscription implements BrokerSubscription {
  readonly #connection: AmqpConnection;
  readonly #channel: Channel;
  readonly #waiting: HeardMessage[] = [];
  #dropped = 0;
  #isDisposed = false;
  #changed = Promise.withResolvers<void>();

  private constructor(connection: AmqpConnection, channel: Channel) {
    this.#connection = connection;
    this.#channel = channel;
    connection.ended.addEventListener("abort", this.#notify, { once: true });
  }

  /** Subscribes. Throws BrokerError, for patterns that RabbitMQ cannot express too; leaves nothing open then. */
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
    return this.#dropped;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HeardMessage, void> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) yield message;
      else if (this.#isDisposed || this.#connection.ended.aborted) return;
      else await this.#changed.promise;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#waiting.length = 0;
    this.#connection.ended.removeEventListener("abort", this.#notify);
    this.#notify();
    await this.#connection.release(this.#channel);
  }

  async #subscribe(exchange: string, key: string): Promise<void> {
    const { queue } = await this.#channel.assertQueue("", {
      exclusive: true,
      autoDelete: true,
      durable: false,
    });
    await this.#channel.bindQueue(queue, exchange, key);
    await this.#channel.consume(queue, (message) => this.#heard(message), { noAck: true });
  }

  #heard(message: ConsumeMessage | null): void {
    if (message === null) {
      const cause = new BrokerError("The broker removed the queue of a subscription", {
        transient: true,
      });
      return this.#connection.lose(cause);
    }
    if (this.#waiting.length >= maxWaitingMessages) {
      this.#waiting.shift();
      this.#dropped++;
    }
    this.#waiting.push({
      topic: topicOf(message.fields.routingKey),
      payload: message.content,
      properties: toProperties(message.properties.headers),
    });
    this.#notify();
  }

  readonly #notify = (): void => {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  };
}
