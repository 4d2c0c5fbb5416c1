/**
 * Takes the calls of one queue, holds them until they are settled, and settles them.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import type { Clock } from "../../support/clock.ts";
import { BrokerError, type Delivery, type PrefetchPermits } from "../broker.ts";
import type { DeliveryBuffer } from "../delivery-buffer.ts";
import type { BrokerLog } from "../log.ts";
import { reopen } from "../reopening.ts";
import type { AmqpConnection } from "./connection.ts";
import { commandFailure } from "./failures.ts";
import { type AnswerFields, answerProperties, brokerTimeOf, deliveryCount } from "./headers.ts";
import { topicOf } from "./routing-keys.ts";
import type { Topology } from "./topology.ts";

/** What a consumer takes from, and how much. */
export interface QueueConsumerOptions {
  /** The queue's name in its group. */
  readonly queue: string;
  readonly topology: Pick<Topology, "addressOf" | "declareQueue">;
  /** Routes the calls of the queue's tools into the declared queue. Throws BrokerError. */
  readonly bind: (signal: AbortSignal) => Promise<void>;
  /** Unsettled deliveries at most, calls of lost connections included. */
  readonly permits: PrefetchPermits;
  /** How often the broker delivers a call. */
  readonly maxDeliveries: number;
  readonly buffer: DeliveryBuffer;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

/** A channel with consumers on it. */
interface Link {
  readonly channel: Channel;
  readonly tags: Set<string>;
  /** Whether the broker closed the channel, and redelivers what came through it. */
  isClosed: boolean;
}

/**
 * A consumer with the broker's own prefetch limit. When the broker ends it, it declares the queue and consumes it again. Ends
 * with its connection.
 */
export class QueueConsumer {
  readonly #connection: AmqpConnection;
  readonly #options: QueueConsumerOptions;
  readonly #cancelling = new AbortController();
  readonly #over: AbortSignal;
  #link: Link | undefined;

  constructor(connection: AmqpConnection, options: QueueConsumerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#over = AbortSignal.any([this.#cancelling.signal, connection.ended]);
    options.permits.onRelease(() => this.#grow());
  }

  /** Whether calls arrive. */
  get isOpen(): boolean {
    return this.#link !== undefined;
  }

  /** Declares, binds and consumes the queue. Throws BrokerError, or the signal's reason; leaves nothing open then. */
  async open(signal: AbortSignal): Promise<void> {
    const { queue, topology, permits, bind } = this.#options;
    const declare = (channel: Channel): Promise<void> => topology.declareQueue(channel, queue);
    await this.#connection.onChannel(`declare the queue ${this.#address}`, declare, signal);
    await bind(signal);
    const channel = await this.#connection.openChannel(signal);
    const link: Link = { channel, tags: new Set(), isClosed: false };
    channel.on("error", (error: unknown) => {
      link.isClosed = true;
      this.#lose(link, commandFailure(error, this.#doing));
    });
    try {
      const consuming = this.#consume(link, permits.available);
      await this.#connection.answered(consuming, this.#doing, signal);
    } catch (error) {
      void this.#connection.release(channel);
      throw error;
    }
    this.#link = link;
    if (this.#over.aborted) await this.cancel();
  }

  /** Consumes the queue as soon as the broker permits it. Never rejects. */
  async reopen(cause: unknown): Promise<void> {
    const { clock, log } = this.#options;
    const open = (): Promise<void> => this.open(this.#over);
    await reopen({ address: this.#address, open, signal: this.#over, clock, log }, cause);
  }

  /** Stops consuming. What arrived can be settled. Never rejects. */
  async cancel(): Promise<void> {
    this.#cancelling.abort(new BrokerError("The consumer was cancelled", { transient: true }));
    const link = this.#link;
    if (link === undefined) return;
    const cancelling = Promise.all(Array.from(link.tags, (tag) => link.channel.cancel(tag)));
    const { ended } = this.#connection;
    await this.#connection.answered(cancelling, "end a consumer", ended).catch(() => undefined);
  }

  get #address(): string {
    return this.#options.topology.addressOf(this.#options.queue);
  }

  get #doing(): string {
    return `send from the queue ${this.#address}`;
  }

  async #consume(link: Link, prefetch: number): Promise<void> {
    // The broker orders redeliveries of a closed channel by these.
    const consumerTag = String(link.tags.size).padStart(12, "0");
    link.tags.add(consumerTag);
    await link.channel.prefetch(prefetch);
    const onMessage = (message: ConsumeMessage | null): void => this.#receive(link, message);
    await link.channel.consume(this.#address, onMessage, { consumerTag });
  }

  /** RabbitMQ fixes the prefetch limit of a consumer: a permit that is released after a reconnect is another consumer's. */
  #grow(): void {
    const link = this.#link;
    if (link === undefined || this.#over.aborted) return;
    this.#consume(link, 1).catch((error: unknown) => this.#lose(link, error));
  }

  #receive(link: Link, message: ConsumeMessage | null): void {
    if (message !== null) return this.#options.buffer.add(this.#toDelivery(link, message));
    const text =
      "The broker ended a consumer: its queue was removed, or a call was not settled within AMQP_CONSUMER_TIMEOUT_SECONDS";
    this.#lose(link, new BrokerError(text, { transient: true }));
  }

  #lose(link: Link, cause: unknown): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    if (this.#over.aborted) return;
    // Another consumer on the channel may go on; what arrived is settled on it.
    if (!link.isClosed) for (const tag of link.tags) link.channel.cancel(tag).catch(() => undefined);
    void this.reopen(cause);
  }

  #toDelivery(link: Link, message: ConsumeMessage): Delivery {
    const { fields, properties, content } = message;
    const { redelivered } = fields;
    let isSettled = false;
    return {
      topic: topicOf(fields.routingKey),
      queue: this.#options.queue,
      payload: content,
      redelivered,
      deliveryCount: deliveryCount(properties.headers, redelivered),
      maxDeliveries: this.#options.maxDeliveries,
      ...brokerTimeOf(properties.headers),
      ...answerProperties(properties as AnswerFields),
      get isLost() {
        return link.isClosed;
      },
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        // The broker redelivers what its channel or connection is gone of.
        if (link.isClosed || this.#connection.ended.aborted) return;
        if (outcome === "accepted") link.channel.ack(message);
        // RabbitMQ 4.3 does not count what comes back by `nack`.
        else link.channel.reject(message, outcome === "failed");
      },
    };
  }
}
