/**
 * Keeps messages until a broker has confirmed them, across lost connections and refusals.
 */
import { resentProperty } from "../protocol/messages/request.ts";
import type { Clock } from "../support/clock.ts";
import { abortable, settlesWithin } from "../support/timeout.ts";
import {
  BrokerError,
  type BrokerSession,
  type OutboundMessage,
  type PublishOutcome,
} from "./broker.ts";

/** Limits of what waits for its confirmation. */
const maxHeldMessages = 1_000;
const maxHeldBytes = 128 * 1024 * 1024;

/** Milliseconds between attempts to publish a retried message, a minute and a half in all. */
export const retryDelaysMs: readonly number[] = [
  ...[250, 500, 1_000, 2_000, 4_000],
  ...Array.from({ length: 16 }, () => 5_000),
];

/** Milliseconds within which a session whose connection broke under a command reports its end. */
export const lossNoticeMs = 1_000;

type Outlet = Pick<BrokerSession, "publish" | "closed">;

interface Held {
  readonly message: OutboundMessage;
  /** The rest of {@link retryDelaysMs}. */
  readonly delays: Iterator<number, undefined>;
  /** Aborts when the caller gives the message up. */
  readonly signal: AbortSignal;
  session: Outlet | undefined;
  resolve(outcome: PublishOutcome): void;
  reject(error: unknown): void;
}

/**
 * Publishes on the session of the moment, and again on the next one when the connection broke
 * before the confirmation: at least once, and in order within a session.
 */
export class Outbox {
  readonly #clock: Clock;
  readonly #onRefused: (message: OutboundMessage, error: BrokerError) => void;
  /** Insertion order is sending order. */
  readonly #held = new Set<Held>();
  #heldBytes = 0;
  #session: Outlet | undefined;
  readonly #closing = new AbortController();

  /** @param onRefused called before each wait for the next attempt */
  constructor(
    clock: Clock,
    onRefused: (message: OutboundMessage, error: BrokerError) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onRefused = onRefused;
  }

  /** Messages that wait for their confirmation. */
  get size(): number {
    return this.#held.size;
  }

  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<PublishOutcome>();
    const delays = (message.isRetried ? retryDelaysMs : []).values();
    const held: Held = { message, delays, signal, session: undefined, resolve, reject };
    const { byteLength } = message.payload;
    for (;;) {
      signal.throwIfAborted();
      this.#closing.signal.throwIfAborted();
      const full = this.#fullError(byteLength);
      if (full === undefined) break;
      if (!(await this.#pause(held, full))) throw full;
    }
    this.#held.add(held);
    this.#heldBytes += byteLength;
    if (this.#session) void this.#send(held, this.#session);
    try {
      return await abortable(promise, signal);
    } finally {
      this.#held.delete(held);
      this.#heldBytes -= byteLength;
    }
  }

  /** Sends what has no confirmation on this session, and all later messages. */
  attach(session: Outlet): void {
    this.#session = session;
    for (const held of this.#held) void this.#send(held, session);
  }

  detach(): void {
    this.#session = undefined;
  }

  /** Rejects held and later messages with `reason`. */
  close(reason: BrokerError): void {
    this.#closing.abort(reason);
    for (const held of this.#held) held.reject(reason);
  }

  #fullError(bytes: number): BrokerError | undefined {
    const limit =
      this.#held.size >= maxHeldMessages
        ? `${maxHeldMessages} messages`
        : this.#heldBytes + bytes > maxHeldBytes
          ? `${this.#heldBytes} of at most ${maxHeldBytes} bytes`
          : undefined;
    if (limit === undefined) return undefined;
    const message = `Cannot hold another message: ${limit} wait for the broker`;
    return new BrokerError(message, { transient: true });
  }

  /** Waits for the next attempt; false when there is none. Never rejects. */
  async #pause({ message, delays, signal }: Held, error: unknown): Promise<boolean> {
    if (!(error instanceof BrokerError && error.transient)) return false;
    const { value: delayMs } = delays.next();
    if (delayMs === undefined) return false;
    this.#onRefused(message, error);
    const over = AbortSignal.any([signal, this.#closing.signal]);
    await this.#clock.sleep(delayMs, over).catch(() => undefined);
    return true;
  }

  /** Never rejects. */
  async #send(held: Held, session: Outlet): Promise<void> {
    const { message, signal } = held;
    const isOver = (): boolean => signal.aborted || this.#closing.signal.aborted;
    const isCurrent = (): boolean => !isOver() && held.session === session;
    for (;;) {
      // The broker may have a copy: consumers tell them apart by this property only.
      const properties = { ...message.properties, [resentProperty]: true };
      const sent = held.session === undefined ? message : { ...message, properties };
      held.session = session;
      try {
        return held.resolve(await session.publish(sent, signal));
      } catch (error) {
        // The next session sends it.
        if (await endedWith(session, error, this.#clock)) return;
        if (!isCurrent()) return;
        const isAgain = await this.#pause(held, error);
        if (!isCurrent()) return;
        if (!isAgain) return held.reject(error);
      }
    }
  }
}

/** Whether a call on a session failed because the session ended. */
export async function endedWith(
  session: Pick<BrokerSession, "closed">,
  error: unknown,
  clock: Clock,
): Promise<boolean> {
  if (!(error instanceof BrokerError && error.transient)) return false;
  return settlesWithin(session.closed, lossNoticeMs, clock);
}
