/**
 * Takes the calls of one queue, holds them until they are settled, and settles them.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import { BrokerError, type Delivery } from "../broker.ts";
import { type Consumer, type ConsumerOptions, reopen } from "../group-session.ts";
import type { AmqpConnection } from "./connection.ts";
import { consumerEnded, consumerFailure } from "./failures.ts";
import { type AnswerFields, answerProperties, brokerTimeOf, deliveryCount } from "./messages.ts";
import { topicOf } from "./routing-keys.ts";
import type { Topology } from "./topology.ts";

export interface QueueConsumerOptions extends ConsumerOptions {
  readonly topology: Pick<Topology, "addressOf" | "declareQueue">;
}

/** A channel with consumers on it. */
interface Link {
  readonly channel: Channel;
  readonly tags: Set<string>;
  /** Consumers that were started. */
  started: number;
  /** Sum of the prefetch limits of its consumers, but for substitutes. */
  prefetch: number;
  unsettled: number;
  /** Why the broker ended a consumer, or the channel. */
  loss: BrokerError | undefined;
  /** Whether the channel is closed: the broker redelivers what came through it. */
  isClosed: boolean;
}

/** Consumes the queue again when the broker ends the consumer. Ends with its connection. */
export class QueueConsumer implements Consumer {
  readonly #connection: AmqpConnection;
  readonly #options: QueueConsumerOptions;
  readonly #address: string;
  readonly #doing: string;
  readonly #cancelling = new AbortController();
  readonly #over: AbortSignal;
  /** The prefetch limit of the moment. */
  #limit: number;
  #link: Link | undefined;

  constructor(connection: AmqpConnection, options: QueueConsumerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#address = options.topology.addressOf(options.queue);
    this.#doing = `send from the queue ${this.#address}`;
    this.#over = AbortSignal.any([this.#cancelling.signal, connection.ended]);
    const { queue, limit, unsettled } = options;
    this.#limit = unsettled.permitsOf(queue, limit, () => {
      this.#limit++;
      this.#grow();
    });
  }

  get isOpen(): boolean {
    return this.#link !== undefined;
  }

  /** Declares, binds and consumes the queue; leaves nothing open when it throws. */
  async open(signal: AbortSignal): Promise<void> {
    const { queue, topology, route } = this.#options;
    await topology.declareQueue(queue, signal);
    await route(signal);
    const channel = await this.#connection.openChannel(signal);
    const counts = { started: 0, prefetch: 0, unsettled: 0 };
    const link: Link = { channel, tags: new Set(), ...counts, loss: undefined, isClosed: false };
    channel.on("error", (error: unknown) => {
      link.isClosed = true;
      this.#lose(link, consumerFailure(error, this.#doing));
    });
    try {
      link.prefetch = this.#limit;
      const consuming = this.#consume(link, link.prefetch);
      await this.#connection.answered(consuming, this.#doing, signal);
      if (link.loss !== undefined) throw link.loss;
    } catch (error) {
      link.isClosed = true;
      void this.#connection.release(channel);
      throw error;
    }
    this.#link = link;
    this.#grow();
    if (this.#over.aborted) await this.cancel();
  }

  async reopen(cause: unknown): Promise<void> {
    const { clock, log } = this.#options;
    const open = (): Promise<void> => this.open(this.#over);
    await reopen({ address: this.#address, open, signal: this.#over, clock, log }, cause);
  }

  async cancel(): Promise<void> {
    this.#cancelling.abort(new BrokerError("The consumer was cancelled", { transient: true }));
    const link = this.#link;
    if (link === undefined) return;
    const { ended } = this.#connection;
    const doing = "end a consumer";
    await this.#connection.answered(endConsumers(link), doing, ended).catch(() => undefined);
  }

  /**
   * Sends both commands together: a channel's limit is that of the consumers after it. Resolves to
   * the tag of the consumer.
   */
  async #consume(link: Link, prefetch: number): Promise<string> {
    // The broker orders redeliveries of a closed channel by these.
    const consumerTag = String(link.started++).padStart(12, "0");
    link.tags.add(consumerTag);
    const onMessage = (message: ConsumeMessage | null): void => this.#receive(link, message);
    await Promise.all([
      link.channel.prefetch(prefetch),
      link.channel.consume(this.#address, onMessage, { consumerTag }),
    ]);
    return consumerTag;
  }

  /** Adds a consumer for released permits: RabbitMQ fixes the limit of one when it starts. */
  #grow(): void {
    const link = this.#link;
    if (link === undefined || this.#over.aborted) return;
    const missing = this.#limit - link.prefetch;
    if (missing === 0) return;
    link.prefetch += missing;
    this.#consume(link, missing).catch((error: unknown) =>
      this.#lose(link, consumerFailure(error, this.#doing)),
    );
  }

  /**
   * Adds a consumer for one delivery more, in place of one that does not count any more. The result
   * ends it; what it has received meanwhile can be settled.
   */
  #substitute(link: Link): () => void {
    if (link !== this.#link || this.#over.aborted) return () => undefined;
    const starting = this.#consume(link, 1);
    starting.catch((error: unknown) => this.#lose(link, consumerFailure(error, this.#doing)));
    return () => {
      const ending = starting.then(async (tag) => {
        if (link.isClosed || !link.tags.delete(tag)) return;
        await link.channel.cancel(tag);
      });
      // The channel is gone then, and the consumer with it.
      ending.catch(() => undefined);
    };
  }

  #receive(link: Link, message: ConsumeMessage | null): void {
    if (message === null) return this.#lose(link, consumerEnded());
    // The broker takes back what arrives while the channel is being closed.
    if (link.isClosed) return;
    link.unsettled++;
    this.#options.buffer.add(this.#toDelivery(link, message));
  }

  #toDelivery(link: Link, message: ConsumeMessage): Delivery {
    const { fields, properties, content } = message;
    const { redelivered } = fields;
    let isSettled = false;
    let endSubstitute: (() => void) | undefined;
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
      exempt: () => {
        if (!isSettled) endSubstitute ??= this.#substitute(link);
      },
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        link.unsettled--;
        endSubstitute?.();
        if (link.isClosed || this.#connection.ended.aborted) return;
        if (outcome === "accepted") link.channel.ack(message);
        // RabbitMQ 4.3 does not count what comes back by `nack`.
        else link.channel.reject(message, outcome === "failed");
        this.#releaseWhenSettled(link);
      },
    };
  }

  /** Running calls of a lost consumer do not count against the limit of the next one. */
  #lose(link: Link, cause: BrokerError): void {
    link.loss ??= cause;
    if (link !== this.#link) return;
    this.#link = undefined;
    if (this.#over.aborted) return;
    // Another consumer on the channel may go on; what arrived is settled on it.
    if (!link.isClosed) endConsumers(link).catch(() => undefined);
    this.#releaseWhenSettled(link);
    void this.reopen(cause);
  }

  #releaseWhenSettled(link: Link): void {
    if (link.loss === undefined || link.unsettled > 0 || link.isClosed) return;
    link.isClosed = true;
    void this.#connection.release(link.channel);
  }
}

async function endConsumers({ channel, tags }: Link): Promise<void> {
  await Promise.all(Array.from(tags, (tag) => channel.cancel(tag)));
}
