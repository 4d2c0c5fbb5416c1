/**
 * Publishes with confirmation: a message counts as published when the broker has stored it.
 */
import type { ConfirmChannel, Message } from "amqplib";
import { resentProperty } from "../../protocol/messages/request.ts";
import type { Clock } from "../../support/clock.ts";
import { newId } from "../../support/ids.ts";
import { abortable } from "../../support/timeout.ts";
import { BrokerError, type OutboundMessage, type PublishOutcome } from "../broker.ts";
import { Confirmations } from "../confirmations.ts";
import { reasonOf } from "../log.ts";
import { stamped } from "../timestamp.ts";
import type { AmqpConnection } from "./connection.ts";
import { commandFailure, replyCodeOf, replyCodes } from "./failures.ts";
import { type Destination, destinationOf, isDirectReply } from "./routing-keys.ts";

/**
 * Milliseconds before a refused message is published again. RabbitMQ 4.3 refuses a message for all
 * its queues while one of these is being deleted; the others have received it.
 */
const refusalDelaysMs = [10, 50, 200];

/** Rejects messages whose channel the broker closed over another one. */
const channelReplaced = new Error("the channel was replaced");

/** A message on its way. */
interface Outgoing {
  readonly message: OutboundMessage;
  readonly destination: Destination;
  readonly properties: NonNullable<OutboundMessage["properties"]>;
}

/** A message that the broker has not confirmed yet. */
interface Unconfirmed extends Outgoing {
  wasReturned: boolean;
  reject(error: Error): void;
}

/**
 * The publishing half of a session. Ends with its connection. When the broker closes the channel
 * over a message that it never takes, that message fails alone, and the others are published again.
 */
export class Publisher {
  readonly #connection: AmqpConnection;
  readonly #exchange: string;
  readonly #clock: Clock;
  readonly #confirmations: Confirmations;
  /** By message id, in the order of the calls. */
  readonly #unconfirmed = new Map<string, Unconfirmed>();
  #channel: Promise<ConfirmChannel>;

  private constructor(connection: AmqpConnection, exchange: string, clock: Clock) {
    this.#connection = connection;
    this.#exchange = exchange;
    this.#clock = clock;
    this.#confirmations = new Confirmations(connection);
    this.#channel = this.#openChannel();
  }

  static async open(
    connection: AmqpConnection,
    exchange: string,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<Publisher> {
    const publisher = new Publisher(connection, exchange, clock);
    await abortable(publisher.#channel, signal);
    return publisher;
  }

  /** `unroutable` when no queue takes the message. Keeps the order of the calls. */
  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const over = AbortSignal.any([signal, this.#connection.ended]);
    over.throwIfAborted();
    const destination = destinationOf(message.topic, this.#exchange);
    const properties = stamped(message.properties, this.#clock.nowMs());
    let outgoing: Outgoing = { message, destination, properties };
    let refusals = 0;
    for (;;) {
      const channel = await abortable(this.#channel, over);
      try {
        const attempt = (): Promise<PublishOutcome> => this.#send(channel, outgoing);
        const { byteLength } = message.payload;
        return await abortable(this.#confirmations.due(byteLength, attempt), over);
      } catch (error) {
        over.throwIfAborted();
        if (error instanceof BrokerError) throw error;
        if (error !== channelReplaced) {
          const delayMs = refusalDelaysMs[refusals++];
          if (delayMs === undefined) throw commandFailure(error, "take a message");
          await this.#clock.sleep(delayMs, over);
        }
      }
      // The broker may have the first copy: consumers tell them apart by this property only.
      outgoing = { ...outgoing, properties: { ...properties, [resentProperty]: true } };
    }
  }

  async #openChannel(): Promise<ConfirmChannel> {
    const channel = await this.#connection.openConfirmChannel(this.#connection.ended);
    // Comes before the confirmation of the same message.
    channel.on("return", ({ properties }: Message) => {
      const returned = this.#unconfirmed.get(String(properties.messageId));
      if (returned) returned.wasReturned = true;
    });
    // Comes before the confirmations fail that are due.
    channel.on("error", (error: unknown) => this.#replaceChannel(channel, error));
    return channel;
  }

  /** Loses the connection when no message on its way is at fault. */
  #replaceChannel(channel: ConfirmChannel, error: unknown): void {
    const message = `The broker refused to publish to the exchange ${this.#exchange}: ${reasonOf(error)}`;
    const refusal = new BrokerError(message, { cause: error, transient: false });
    const isRefused = refusedBy(error);
    const unconfirmed = [...this.#unconfirmed.values()];
    if (!unconfirmed.some(isRefused)) return this.#connection.lose(refusal);
    this.#channel = this.#connection.release(channel).then(() => this.#openChannel());
    this.#channel.catch((failure: unknown) => this.#connection.lose(failure));
    for (const one of unconfirmed) one.reject(isRefused(one) ? refusal : channelReplaced);
  }

  async #send(channel: ConfirmChannel, outgoing: Outgoing): Promise<PublishOutcome> {
    const { message, destination, properties } = outgoing;
    const { payload, correlationId } = message;
    const { exchange, key } = destination;
    const id = newId();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const unconfirmed: Unconfirmed = { ...outgoing, wasReturned: false, reject };
    this.#unconfirmed.set(id, unconfirmed);
    try {
      const content = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
      const options = {
        mandatory: !isDirectReply(key),
        persistent: true,
        messageId: id,
        contentType: "application/json",
        headers: properties,
        ...(correlationId !== undefined && { correlationId }),
      };
      const confirm = (error: Error | null): void => (error ? reject(error) : resolve());
      write(() => channel.publish(exchange, key, content, options, confirm), message.topic);
      await abortable(promise, this.#connection.ended);
      return unconfirmed.wasReturned ? "unroutable" : "confirmed";
    } finally {
      this.#unconfirmed.delete(id);
    }
  }
}

/** Throws BrokerError; what cannot be written into a frame never can. */
function write(act: () => void, topic: string): void {
  try {
    act();
  } catch (error) {
    throw new BrokerError(`Cannot publish to ${topic}: ${reasonOf(error)}`, {
      cause: error,
      transient: !(error instanceof RangeError || error instanceof TypeError),
    });
  }
}

/**
 * Whether a message is the one that the broker refused when it closed the channel: by its size, its
 * topic or its exchange, which the reason names.
 */
function refusedBy(error: unknown): (unconfirmed: Unconfirmed) => boolean {
  const [code, text] = [replyCodeOf(error), reasonOf(error)];
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
