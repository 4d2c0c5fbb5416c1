/**
 * Publishes with confirmation: a message counts as published when the broker has stored it where it
 * belongs.
 */
import solace from "solclientjs";
import type { Clock } from "../../support/clock.ts";
import { abortable } from "../../support/within.ts";
import { BrokerError, type OutboundMessage, type PublishOutcome } from "../broker.ts";
import type { StatusDelivery } from "./config.ts";
import type { SolaceConnection } from "./connection.ts";
import { isFull, requestFailure } from "./failures.ts";
import { subcodeOf } from "./library.ts";
import { toMessage } from "./messages.ts";

/** Messages that are not sent or not confirmed; further ones are refused. */
const maxHeldMessages = 2_000;

/** Payload bytes that are not sent or not confirmed. */
const maxHeldBytes = 192 * 1024 * 1024;

/**
 * Milliseconds without any confirmation, and without any room to send, while some message is held.
 */
const confirmTimeoutMs = 60_000;

/** A message in the order of the calls. */
interface Held {
  readonly key: string;
  readonly message: solace.Message;
}

/** The publishing half of a session. Lives as long as its connection. */
export class Publisher {
  readonly #connection: SolaceConnection;
  readonly #clock: Clock;
  readonly #statusDelivery: StatusDelivery;
  /** Not sent yet, for want of room. */
  readonly #waiting: Held[] = [];
  #heldMessages = 0;
  #heldBytes = 0;
  #isPumping = false;
  #overdue: NodeJS.Timeout | undefined;

  constructor(connection: SolaceConnection, clock: Clock, statusDelivery: StatusDelivery) {
    this.#connection = connection;
    this.#clock = clock;
    this.#statusDelivery = statusDelivery;
    connection.ended.addEventListener("abort", () => clearTimeout(this.#overdue), { once: true });
  }

  /**
   * Publishes to a topic. Resolves when the broker confirmed the message, with `unroutable` when it
   * says that nobody subscribes; a status that is sent directly counts as confirmed when it is
   * sent. Messages keep the order of the calls. Throws BrokerError, or the signal's reason when it
   * aborts (the message may have been published then).
   */
  async publish(outbound: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    signal.throwIfAborted();
    const { ended, answers } = this.#connection;
    ended.throwIfAborted();
    const sizeBytes = outbound.payload.byteLength;
    this.#checkRoom(sizeBytes);
    const message = this.#toMessage(outbound);
    const { key, answer } = answers.expect();
    message.setCorrelationKey(key);
    const held = { key, message };
    this.#hold(sizeBytes);
    this.#waiting.push(held);
    void this.#pump();
    try {
      await abortable(answer, AbortSignal.any([signal, ended]));
      return "confirmed";
    } catch (error) {
      signal.throwIfAborted();
      ended.throwIfAborted();
      if (isUnroutable(error)) return "unroutable";
      throw requestFailure(error, `take a message to ${outbound.topic}`);
    } finally {
      answers.forget(key);
      const index = this.#waiting.indexOf(held);
      if (index !== -1) this.#waiting.splice(index, 1);
      this.#release(sizeBytes);
    }
  }

  #toMessage(outbound: OutboundMessage): solace.Message {
    const message = toMessage(outbound, this.#clock.nowMs());
    const isDirect = outbound.isStatus === true && this.#statusDelivery === "direct";
    const { DIRECT, PERSISTENT } = solace.MessageDeliveryModeType;
    message.setDeliveryMode(isDirect ? DIRECT : PERSISTENT);
    return message;
  }

  /**
   * Sends in order what waits, as long as there is room, and goes on when there is again. Never
   * rejects.
   */
  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    for (let held = this.#waiting[0]; held !== undefined; held = this.#waiting[0]) {
      if (this.#connection.ended.aborted) return;
      const { writable } = this.#connection;
      if (this.#send(held)) this.#waiting.shift();
      else await writable;
    }
    this.#isPumping = false;
  }

  /** Whether the library has taken the message or refused it for good; otherwise it has no room. */
  #send({ key, message }: Held): boolean {
    const { session, answers } = this.#connection;
    try {
      session.send(message);
      // Nobody confirms what is sent directly.
      if (message.getDeliveryMode() === solace.MessageDeliveryModeType.DIRECT) answers.succeed(key);
    } catch (error) {
      if (isFull(error)) return false;
      answers.fail(key, error);
    }
    return true;
  }

  #hold(sizeBytes: number): void {
    this.#heldMessages++;
    this.#heldBytes += sizeBytes;
    if (this.#overdue === undefined) this.#watch();
  }

  #release(sizeBytes: number): void {
    this.#heldMessages--;
    this.#heldBytes -= sizeBytes;
    this.#watch();
  }

  /** Waits anew for the next confirmation, if one is due. */
  #watch(): void {
    clearTimeout(this.#overdue);
    const isDue = this.#heldMessages > 0 && !this.#connection.ended.aborted;
    this.#overdue = isDue ? setTimeout(() => this.#giveUp(), confirmTimeoutMs) : undefined;
  }

  #giveUp(): void {
    const message = `The broker confirmed no message within ${confirmTimeoutMs} ms`;
    this.#connection.lose(new BrokerError(message, { transient: true }));
  }

  #checkRoom(sizeBytes: number): void {
    const limit =
      this.#heldMessages >= maxHeldMessages
        ? `${maxHeldMessages} messages`
        : this.#heldBytes + sizeBytes > maxHeldBytes
          ? `${this.#heldBytes} of at most ${maxHeldBytes} bytes`
          : undefined;
    if (limit === undefined) return;
    throw new BrokerError(`Cannot publish another message: ${limit} have no confirmation yet`, {
      transient: true,
    });
  }
}

/** Whether the client profile has the broker refuse what nobody subscribes to. */
function isUnroutable(failure: unknown): boolean {
  return subcodeOf(failure) === solace.ErrorSubcode.NO_SUBSCRIPTION_MATCH;
}
