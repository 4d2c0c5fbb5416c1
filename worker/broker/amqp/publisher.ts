/**
 * Publishes with confirmation: a message counts as published when the broker has stored it where it belongs.
 */
import type { ConfirmChannel, Message } from "amqplib";
import type { Clock } from "../../support/clock.ts";
import { newId } from "../../support/ids.ts";
import { abortable } from "../abortable.ts";
import { BrokerError, type OutboundMessage, type PublishOutcome } from "../broker.ts";
import type { AmqpConnection } from "./connection.ts";
import { commandFailure, replyCodeOf, replyCodes, textOf } from "./failures.ts";
import { routingKey } from "./routing-keys.ts";

/**
 * Messages without a confirmation; further ones are refused. amqplib keeps what the socket does not take, so this and
 * the next limit are those of its buffer as well.
 */
const maxUnconfirmedMessages = 2_000;

/** Payload bytes without a confirmation. */
const maxUnconfirmedBytes = 192 * 1024 * 1024;

/** Milliseconds without any confirmation while some are due, unless the broker said that it takes no messages. */
const confirmTimeoutMs = 60_000;

/** A message that the broker has not confirmed yet. */
interface Unconfirmed {
  readonly sizeBytes: number;
  wasReturned: boolean;
  resolve(outcome: PublishOutcome): void;
  reject(error: BrokerError): void;
}

/** The publishing half of a session. Lives as long as its connection. */
export class Publisher {
  readonly #connection: AmqpConnection;
  readonly #channel: ConfirmChannel;
  readonly #exchange: string;
  readonly #clock: Clock;
  /** By message id. */
  readonly #unconfirmed = new Map<string, Unconfirmed>();
  #unconfirmedBytes = 0;
  #overdue: NodeJS.Timeout | undefined;

  private constructor(
    connection: AmqpConnection,
    channel: ConfirmChannel,
    exchange: string,
    clock: Clock,
  ) {
    this.#connection = connection;
    this.#channel = channel;
    this.#exchange = exchange;
    this.#clock = clock;
    // Comes before the confirmation of the same message.
    channel.on("return", ({ properties }: Message) => {
      const returned = this.#unconfirmed.get(String(properties.messageId));
      if (returned) returned.wasReturned = true;
    });
    // Comes before the confirmations fail that are due.
    channel.on("error", (error: unknown) => this.#refused(error));
    connection.ended.addEventListener("abort", () => this.#rejectAll(), { once: true });
  }

  static async open(
    connection: AmqpConnection,
    exchange: string,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<Publisher> {
    const channel = await connection.openConfirmChannel(signal);
    const publisher = new Publisher(connection, channel, exchange, clock);
    connection.rely(channel);
    return publisher;
  }

  /**
   * Publishes to the exchange. Resolves when the broker confirmed the message, with `unroutable` when no queue takes it.
   * Messages keep the order of the calls. Throws BrokerError, or the signal's reason when it aborts (the message may
   * have been published then).
   */
  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    signal.throwIfAborted();
    this.#connection.ended.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<PublishOutcome>();
    const sizeBytes = message.payload.byteLength;
    this.#checkRoom(sizeBytes);
    const id = newId();
    this.#send(message, id);
    this.#unconfirmed.set(id, { sizeBytes, wasReturned: false, resolve, reject });
    this.#unconfirmedBytes += sizeBytes;
    if (this.#overdue === undefined) this.#watch();
    return abortable(promise, signal);
  }

  #send({ topic, payload, properties }: OutboundMessage, id: string): void {
    const key = routingKey(topic);
    const nowMs = this.#clock.nowMs();
    const content = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    const options = {
      mandatory: true,
      persistent: true,
      messageId: id,
      contentType: "application/json",
      headers: { ...properties, timestamp: nowMs },
    };
    try {
      this.#channel.publish(this.#exchange, key, content, options, (error: unknown) =>
        this.#confirmed(id, error),
      );
    } catch (error) {
      this.#connection.ended.throwIfAborted();
      throw new BrokerError(`Cannot publish to ${topic}: ${textOf(error)}`, {
        cause: error,
        // What cannot be written into a frame never can.
        transient: !(error instanceof RangeError || error instanceof TypeError),
      });
    }
  }

  #confirmed(id: string, error: unknown): void {
    const unconfirmed = this.#take(id);
    if (unconfirmed === undefined) return;
    if (error) unconfirmed.reject(commandFailure(error, "take a message"));
    else unconfirmed.resolve(unconfirmed.wasReturned ? "unroutable" : "confirmed");
    this.#watch();
  }

  /**
   * The broker has closed the channel for a message that it will not take on the next one either: those are answered
   * here. The others fail with the connection, and may be published again.
   */
  #refused(error: unknown): void {
    const code = replyCodeOf(error);
    const tooLargeBytes = Number(/message size (\d+) is larger/.exec(textOf(error))?.[1]);
    for (const [id, { sizeBytes }] of this.#unconfirmed) {
      const isAtFault =
        code === replyCodes.accessRefused ||
        (code === replyCodes.preconditionFailed && sizeBytes === tooLargeBytes);
      if (!isAtFault) continue;
      const message = `The broker refused to publish to the exchange ${this.#exchange}: ${textOf(error)}`;
      this.#take(id)?.reject(new BrokerError(message, { cause: error, transient: false }));
    }
  }

  #rejectAll(): void {
    clearTimeout(this.#overdue);
    const ended = this.#connection.ended.reason as BrokerError;
    for (const id of this.#unconfirmed.keys()) this.#take(id)?.reject(ended);
  }

  #take(id: string): Unconfirmed | undefined {
    const unconfirmed = this.#unconfirmed.get(id);
    if (unconfirmed && this.#unconfirmed.delete(id))
      this.#unconfirmedBytes -= unconfirmed.sizeBytes;
    return unconfirmed;
  }

  /** Waits anew for the next confirmation, if one is due. */
  #watch(): void {
    clearTimeout(this.#overdue);
    this.#overdue =
      this.#unconfirmed.size === 0 ? undefined : setTimeout(() => this.#remind(), confirmTimeoutMs);
  }

  #remind(): void {
    if (this.#connection.isBlocked) return this.#watch();
    const message = `The broker confirmed no message within ${confirmTimeoutMs} ms`;
    this.#connection.lose(new BrokerError(message, { transient: true }));
  }

  #checkRoom(sizeBytes: number): void {
    const limit =
      this.#unconfirmed.size >= maxUnconfirmedMessages
        ? `${maxUnconfirmedMessages} messages`
        : this.#unconfirmedBytes + sizeBytes > maxUnconfirmedBytes
          ? `${this.#unconfirmedBytes} of at most ${maxUnconfirmedBytes} bytes`
          : undefined;
    if (limit === undefined) return;
    throw new BrokerError(`Cannot publish another message: ${limit} have no confirmation yet`, {
      transient: true,
    });
  }
}
