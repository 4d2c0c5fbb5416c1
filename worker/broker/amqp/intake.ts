/**
 * Takes calls from queues: what the broker hands out waits here until it is pulled, and each is settled on the channel it
 * came on.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import type { Delivery, Settlement } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { AmqpConnection } from "./connection.ts";
import { replyCodeOf, replyCodes, textOf } from "./failures.ts";
import { deliveryCount, toProperties } from "./headers.ts";
import { topicOf } from "./routing-keys.ts";

/** How much to take, and who does something about what the broker takes away. */
export interface IntakeOptions {
  /**
   * Deliveries that are handed out and not settled, at most. The broker sends as many of each queue, since it knows no such
   * limit for a channel with quorum queues: when as many wait here besides, no more are taken until none waits.
   */
  readonly maxUnsettled: number;
  readonly log: BrokerLog;
  /** Told when the broker has ended the consumer of a queue, such as for the deletion of the queue. */
  readonly onCancelled: (queue: string) => void;
}

/**
 * The receiving half of a session. Lives as long as its connection.
 *
 * ```
 *            more than `maxUnsettled` wait here
 *   taking ────────────────────────────────────► holding: consumers are ended one by one, others get the calls
 *      ▲                                            │
 *      └──────────── none waits any more ◄──────────┘    consumers start again one by one
 * ```
 *
 * With a single queue there is nothing to hold, because the broker keeps the limit.
 */
export class Intake {
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #connection: AmqpConnection;
  readonly #channel: Channel;
  readonly #options: IntakeOptions;
  /** Queues to take from, those that have waited longest for it first. */
  readonly #wanted = new Set<string>();
  /** Consumer tags by queue; a promise, so that whoever comes second waits for the first. */
  readonly #consumers = new Map<string, Promise<string>>();
  /** Received and not handed out yet. No more than the broker sends without settlement. */
  readonly #waiting: ConsumeMessage[] = [];
  #unsettled = 0;
  #isHolding = false;
  #isRegulating = false;
  #isCompleting = false;
  #isComplete = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  private constructor(connection: AmqpConnection, channel: Channel, options: IntakeOptions) {
    this.#connection = connection;
    this.#channel = channel;
    this.#options = options;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    channel.on("error", (error: unknown) => this.#warnOfTimeout(error));
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  static async open(
    connection: AmqpConnection,
    options: IntakeOptions,
    signal: AbortSignal,
  ): Promise<Intake> {
    const channel = await connection.openChannel(signal);
    const limiting = channel.prefetch(options.maxUnsettled);
    await connection.answered(limiting, "limit what it sends", signal);
    const intake = new Intake(connection, channel, options);
    connection.rely(channel);
    return intake;
  }

  /** Takes from a queue, unless it is to take no more at all. Idempotent. Throws BrokerError. */
  async consume(queue: string, signal: AbortSignal): Promise<void> {
    if (this.#isCompleting) return;
    this.#wanted.add(queue);
    if (this.#isHolding) return;
    const consumer = this.#consumers.get(queue) ?? this.#start(queue);
    await this.#connection.answered(consumer, `send from the queue ${queue}`, signal);
  }

  isConsuming(queue: string): boolean {
    return this.#wanted.has(queue);
  }

  /** Takes no more from a queue; what came from it is handed out. Idempotent. Throws BrokerError. */
  async cancel(queue: string, signal: AbortSignal): Promise<void> {
    this.#wanted.delete(queue);
    const stopping = this.#stop(queue);
    await this.#connection.answered(stopping, `stop sending from the queue ${queue}`, signal);
  }

  /** Takes no more from any queue; `deliveries` ends after what came. Throws BrokerError. */
  async complete(): Promise<void> {
    this.#isCompleting = true;
    this.#wanted.clear();
    const { ended } = this.#connection;
    await Promise.all(Array.from(this.#consumers.keys(), (queue) => this.cancel(queue, ended)));
    this.#isComplete = true;
    this.#notify();
  }

  #start(queue: string): Promise<string> {
    const starting = this.#channel
      .consume(queue, (message) => {
        if (message === null) this.#cancelled(queue, starting);
        else this.#received(message);
      })
      .then(({ consumerTag }) => consumerTag);
    this.#consumers.set(queue, starting);
    this.#wanted.delete(queue);
    this.#wanted.add(queue);
    // What went wrong is told to those who wait.
    starting.catch(() => this.#forget(queue, starting));
    return starting;
  }

  async #stop(queue: string): Promise<void> {
    const consumer = this.#consumers.get(queue);
    if (consumer === undefined) return;
    this.#consumers.delete(queue);
    await this.#channel.cancel(await consumer);
  }

  /** Holds or goes on as the line here is too long or empty, one consumer after the other. Never rejects. */
  async #regulate(): Promise<void> {
    if (this.#isRegulating) return;
    this.#isRegulating = true;
    const { ended } = this.#connection;
    try {
      while (!ended.aborted) {
        if (this.#waiting.length > this.#options.maxUnsettled) this.#isHolding = true;
        if (this.#waiting.length === 0) this.#isHolding = false;
        const [queue] = this.#isHolding ? this.#consumers.keys() : this.#missing();
        if (queue === undefined) return;
        const step = this.#isHolding ? this.#stop(queue) : this.#start(queue);
        await this.#connection.answered<unknown>(step, `hold or send the queue ${queue}`, ended);
      }
    } catch (error) {
      this.#connection.lose(error);
    } finally {
      this.#isRegulating = false;
    }
  }

  #missing(): Iterable<string> {
    return this.#wanted.difference(this.#consumers);
  }

  #received(message: ConsumeMessage): void {
    this.#waiting.push(message);
    if (this.#waiting.length > this.#options.maxUnsettled) void this.#regulate();
    this.#notify();
  }

  #cancelled(queue: string, consumer: Promise<string>): void {
    if (!this.#forget(queue, consumer)) return;
    // Not wanted before it exists again.
    this.#wanted.delete(queue);
    this.#options.onCancelled(queue);
  }

  #forget(queue: string, consumer: Promise<string>): boolean {
    return this.#consumers.get(queue) === consumer && this.#consumers.delete(queue);
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What was received when the connection ended is not ours any more.
    while (!this.#connection.ended.aborted) {
      const mayHandOut = this.#unsettled < this.#options.maxUnsettled;
      const message = mayHandOut ? this.#waiting.shift() : undefined;
      if (message !== undefined) yield this.#handOut(message);
      else if (this.#isComplete && this.#waiting.length === 0) return;
      else await this.#changed.promise;
    }
  }

  #handOut(message: ConsumeMessage): Delivery {
    const { headers } = message.properties;
    const { redelivered, routingKey } = message.fields;
    let isSettled = false;
    this.#unsettled++;
    if (this.#isHolding && this.#waiting.length === 0) void this.#regulate();
    return {
      topic: topicOf(routingKey),
      payload: message.content,
      redelivered,
      deliveryCount: deliveryCount(headers, redelivered),
      properties: toProperties(headers),
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        this.#unsettled--;
        this.#settle(message, outcome);
        this.#notify();
      },
    };
  }

  /** Nothing when the channel is gone: the broker has the call again, and would take a late word for a mistake. */
  #settle(message: ConsumeMessage, outcome: Settlement): void {
    if (this.#connection.ended.aborted) return;
    switch (outcome) {
      case "accepted":
        return this.#channel.ack(message);
      case "failed":
        return this.#channel.nack(message, false, true);
      case "rejected":
        return this.#channel.nack(message, false, false);
    }
  }

  #warnOfTimeout(error: unknown): void {
    const isTimeout =
      replyCodeOf(error) === replyCodes.preconditionFailed &&
      /acknowledgement on channel \d+ timed out/.test(textOf(error));
    if (isTimeout) {
      this.#options.log.warn({ err: error }, "broker took unsettled calls back after its timeout");
    }
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
