/**
 * Publishes with confirmation: a message counts as published when the broker has stored it where it
 * belongs.
 */
import type { ConfirmChannel, Message } from "amqplib";
import { resentProperty } from "../../protocol/request.ts";
import type { Clock } from "../../support/clock.ts";
import { newId } from "../../support/ids.ts";
import { abortable } from "../../support/within.ts";
import { BrokerError, type OutboundMessage, type PublishOutcome } from "../broker.ts";
import { stamped } from "../timestamp.ts";
import type { AmqpConnection } from "./connection.ts";
import { commandFailure, replyCodeOf, replyCodes, textOf } from "./failures.ts";
import { type Destination, destinationOf, isDirectReply } from "./routing-keys.ts";

/**
 * Messages without a confirmation; further ones are refused. amqplib keeps what the socket does not
 * take, so this and the next limit are those of its buffer as well.
 */
const maxUnconfirmedMessages = 2_000;

/** Payload bytes without a confirmation. */
const maxUnconfirmedBytes = 192 * 1024 * 1024;

/**
 * Milliseconds before a message is published again that the broker has refused. RabbitMQ 4.3
 * refuses one for all its queues when one of these is just going, with the listener that it was
 * for: the others have got it then.
 */
const refusalDelaysMs = [10, 50, 200];

/**
 * Milliseconds without any confirmation while some are due, unless the broker said that it takes no
 * messages.
 */
const confirmTimeoutMs = 60_000;

/** A message that the broker has not confirmed yet. */
interface Unconfirmed {
  readonly id: string;
  readonly message: OutboundMessage;
  readonly destination: Destination;
  readonly properties: NonNullable<OutboundMessage["properties"]>;
  /** When it aborts the message is not sent again. */
  readonly signal: AbortSignal;
  wasSent: boolean;
  wasReturned: boolean;
  /** How often the broker has refused it. */
  refusals: number;
  resolve(outcome: PublishOutcome): void;
  reject(error: BrokerError): void;
}

/**
 * The publishing half of a session. Lives as long as its connection. A channel that the broker
 * closes over a message which it will never take is replaced: that message fails alone, and what
 * was published with it is published again.
 */
export class Publisher {
  readonly #connection: AmqpConnection;
  readonly #exchange: string;
  readonly #clock: Clock;
  /** By message id, in the order of the calls. */
  readonly #unconfirmed = new Map<string, Unconfirmed>();
  /** Undefined while it is being replaced. */
  #channel: ConfirmChannel | undefined;
  #unconfirmedBytes = 0;
  #overdue: NodeJS.Timeout | undefined;

  private constructor(connection: AmqpConnection, exchange: string, clock: Clock) {
    this.#connection = connection;
    this.#exchange = exchange;
    this.#clock = clock;
    connection.ended.addEventListener("abort", () => this.#rejectAll(), { once: true });
  }

  static async open(
    connection: AmqpConnection,
    exchange: string,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<Publisher> {
    const publisher = new Publisher(connection, exchange, clock);
    await publisher.#openChannel(signal);
    return publisher;
  }

  /**
   * Publishes to the exchange. Resolves when the broker confirmed the message, with `unroutable`
   * when no queue takes it. Messages keep the order of the calls. Throws BrokerError, or the
   * signal's reason when it aborts (the message may have been published then).
   */
  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    signal.throwIfAborted();
    this.#connection.ended.throwIfAborted();
    const sizeBytes = message.payload.byteLength;
    this.#checkRoom(sizeBytes);
    const destination = destinationOf(message.topic, this.#exchange);
    const { promise, resolve, reject } = Promise.withResolvers<PublishOutcome>();
    const [id, properties] = [newId(), stamped(message.properties, this.#clock.nowMs())];
    const states = { wasSent: false, wasReturned: false, refusals: 0 };
    const what = { id, message, destination, properties, signal };
    const unconfirmed = { ...what, ...states, resolve, reject };
    this.#unconfirmed.set(id, unconfirmed);
    this.#unconfirmedBytes += sizeBytes;
    if (this.#channel !== undefined) this.#send(unconfirmed, this.#channel);
    if (this.#overdue === undefined) this.#watch();
    return abortable(promise, signal);
  }

  /** Opens a channel, and sends all that has no confirmation. */
  async #openChannel(signal: AbortSignal): Promise<void> {
    const channel = await this.#connection.openConfirmChannel(signal);
    // Comes before the confirmation of the same message.
    channel.on("return", ({ properties }: Message) => {
      const returned = this.#unconfirmed.get(String(properties.messageId));
      if (returned) returned.wasReturned = true;
    });
    // Comes before the confirmations fail that are due.
    channel.on("error", (error: unknown) => void this.#replaceChannel(channel, error));
    this.#channel = channel;
    for (const id of this.#unconfirmed.keys()) this.#sendAgain(id);
  }

  #send(unconfirmed: Unconfirmed, channel: ConfirmChannel): void {
    const { id, destination, properties, wasSent, message } = unconfirmed;
    const { payload, correlationId } = message;
    const content = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    // The broker may have the first copy: to it and its consumers, both are messages of their own.
    const resent = wasSent ? { [resentProperty]: true } : {};
    const { exchange, key } = destination;
    const options = {
      mandatory: !isDirectReply(key),
      persistent: true,
      messageId: id,
      contentType: "application/json",
      headers: { ...properties, ...resent },
      ...(correlationId !== undefined && { correlationId }),
    };
    unconfirmed.wasSent = true;
    unconfirmed.wasReturned = false;
    try {
      channel.publish(exchange, key, content, options, (error: unknown) => {
        if (channel === this.#channel) this.#confirmed(id, error);
      });
    } catch (error) {
      const failure = new BrokerError(`Cannot publish to ${message.topic}: ${textOf(error)}`, {
        cause: error,
        // What cannot be written into a frame never can.
        transient: !(error instanceof RangeError || error instanceof TypeError),
      });
      this.#take(id)?.reject(failure);
    }
  }

  #confirmed(id: string, error: unknown): void {
    const unconfirmed = this.#unconfirmed.get(id);
    if (unconfirmed === undefined) return;
    const delayMs = error ? refusalDelaysMs[unconfirmed.refusals++] : undefined;
    if (delayMs !== undefined) {
      setTimeout(() => this.#sendAgain(id), delayMs).unref();
    } else {
      this.#take(id);
      if (error) unconfirmed.reject(commandFailure(error, "take a message"));
      else unconfirmed.resolve(unconfirmed.wasReturned ? "unroutable" : "confirmed");
    }
    this.#watch();
  }

  #sendAgain(id: string): void {
    const unconfirmed = this.#unconfirmed.get(id);
    if (unconfirmed === undefined) return;
    // A status that went out now would follow the answer of its call.
    if (unconfirmed.signal.aborted) {
      this.#take(id);
      this.#watch();
    } else if (this.#channel) {
      this.#send(unconfirmed, this.#channel);
    }
  }

  /**
   * The broker has closed the channel. When it was for messages that it will not take on the next
   * one either, these are answered; otherwise the connection is given up. Never rejects.
   */
  async #replaceChannel(channel: ConfirmChannel, error: unknown): Promise<void> {
    this.#channel = undefined;
    const guilty = Array.from(this.#unconfirmed.values()).filter(refusedBy(error));
    const message = `The broker refused to publish to the exchange ${this.#exchange}: ${textOf(error)}`;
    const refusal = new BrokerError(message, { cause: error, transient: false });
    for (const { id } of guilty) this.#take(id)?.reject(refusal);
    if (guilty.length === 0) return this.#connection.lose(refusal);
    try {
      await this.#connection.release(channel);
      await this.#openChannel(this.#connection.ended);
    } catch (failure) {
      this.#connection.lose(failure);
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
      this.#unconfirmedBytes -= unconfirmed.message.payload.byteLength;
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

/**
 * Tells of a message whether the broker means it when it closes the channel. It names what it
 * refuses: the size of a message, the topic or, of every message, the exchange that the user may
 * not write to.
 */
function refusedBy(error: unknown): (unconfirmed: Unconfirmed) => boolean {
  const [code, text] = [replyCodeOf(error), textOf(error)];
  if (code === replyCodes.preconditionFailed) {
    const sizeBytes = Number(/message size (\d+) is larger/.exec(text)?.[1]);
    return ({ message }) => message.payload.byteLength === sizeBytes;
  }
  if (code !== replyCodes.accessRefused) return () => false;
  const refused = /access to exchange '(.*?)' in vhost/s.exec(text)?.[1];
  if (refused !== undefined) {
    return ({ destination }) => (destination.exchange || "amq.default") === refused;
  }
  const named = /access to topic '(.*?)(?:' in exchange|\.\.\.|$)/s.exec(text)?.[1];
  if (named === undefined) return () => true;
  // Long reasons are cut off.
  const isWhole = text.includes(`'${named}' in exchange`);
  return ({ destination: { key } }) => (isWhole ? key === named : key.startsWith(named));
}
