/**
 * Keeps what we publish until a broker has confirmed it, across the loss of connections and while
 * the broker refuses it.
 */
import { resentProperty } from "../protocol/request.ts";
import type { Clock } from "../support/clock.ts";
import { settlesWithin } from "../support/within.ts";
import {
  BrokerError,
  type BrokerSession,
  type OutboundMessage,
  type PublishOutcome,
} from "./broker.ts";

/**
 * Messages that may wait for their confirmation; more means that nobody upstream limits the calls
 * in flight.
 */
const maxHeldMessages = 1_000;

/** Payload bytes that may wait for their confirmation. */
const maxHeldBytes = 128 * 1024 * 1024;

/** Attempts at the last of the delays. */
const lateAttempts = 16;

/**
 * Milliseconds between attempts to publish a retried message, a minute and a half in all: a full
 * queue is waited for.
 */
export const retryDelaysMs: readonly number[] = [
  ...[250, 500, 1_000, 2_000, 4_000],
  ...Array.from({ length: lateAttempts }, () => 5_000),
];

/** Milliseconds within which a session whose connection broke under a command says so. */
export const lossNoticeMs = 1_000;

/** What of a session matters here. */
type Outlet = Pick<BrokerSession, "publish" | "closed">;

/** What is left of {@link retryDelaysMs}. */
type Delays = Iterator<number, undefined>;

/** A message without its confirmation. */
interface Held {
  readonly message: OutboundMessage;
  readonly delays: Delays;
  readonly signal: AbortSignal;
  /** The session it went out on last. */
  session: Outlet | undefined;
  settle(result: PublishOutcome | Error): void;
}

/**
 * Messages in the order they were given. Each goes out on the session of the moment, and again on
 * the next session when the connection broke before the confirmation came: at least once, and in
 * order within every session.
 */
export class Outbox {
  readonly #clock: Clock;
  readonly #onRefused: (message: OutboundMessage, error: BrokerError) => void;
  /** Insertion order is sending order. */
  readonly #held = new Set<Held>();
  #heldBytes = 0;
  #session: Outlet | undefined;
  #closed: BrokerError | undefined;
  readonly #end = Promise.withResolvers<void>();

  /** @param onRefused called before each wait for the next attempt */
  constructor(
    clock: Clock,
    onRefused: (message: OutboundMessage, error: BrokerError) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onRefused = onRefused;
  }

  /**
   * Resolves with what a broker said of the message. Rejects with the signal's reason, with a
   * BrokerError that trying again on another connection would not help, or with one that names the
   * limit when too much is held already. A retried message is rejected after its last delay.
   */
  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const delays = (message.isRetried ? retryDelaysMs : []).values();
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw this.#closed;
      const full = this.#fullError(message.payload.byteLength);
      if (full === undefined) return await this.#hold(message, delays, signal);
      if (!(await this.#pause(message, full, delays, signal))) throw full;
    }
  }

  #hold(message: OutboundMessage, delays: Delays, signal: AbortSignal): Promise<PublishOutcome> {
    return new Promise((resolve, reject) => {
      const bytes = message.payload.byteLength;
      const held: Held = {
        message,
        delays,
        signal,
        session: undefined,
        settle: (result) => {
          if (!this.#held.delete(held)) return;
          this.#heldBytes -= bytes;
          signal.removeEventListener("abort", onAbort);
          if (result instanceof Error) reject(result);
          else resolve(result);
        },
      };
      const onAbort = (): void => held.settle(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#held.add(held);
      this.#heldBytes += bytes;
      if (this.#session) void this.#send(held, this.#session);
    });
  }

  /** Sends everything that has no confirmation on this session, and what comes from now on. */
  attach(session: Outlet): void {
    this.#session = session;
    for (const held of this.#held) void this.#send(held, session);
  }

  /** Holds everything from now on. */
  detach(): void {
    this.#session = undefined;
  }

  /** Gives up: what is held, and everything from now on, fails with `reason`. */
  close(reason: BrokerError): void {
    this.#closed = reason;
    this.#end.resolve();
    for (const held of this.#held) held.settle(reason);
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

  /** Waits for the next attempt. Resolves to whether there is one. Never rejects. */
  async #pause(
    message: OutboundMessage,
    error: unknown,
    delays: Delays,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!(error instanceof BrokerError && error.transient)) return false;
    const { value: delayMs } = delays.next();
    if (delayMs === undefined) return false;
    this.#onRefused(message, error);
    await settlesWithin(this.#end.promise, delayMs, this.#clock, signal);
    return true;
  }

  /** Never rejects. */
  async #send(held: Held, session: Outlet): Promise<void> {
    const { message, delays, signal } = held;
    for (;;) {
      // The broker may have a copy: to it and its consumers, both are messages of their own.
      const sent =
        held.session === undefined
          ? message
          : { ...message, properties: { ...message.properties, [resentProperty]: true } };
      held.session = session;
      try {
        return held.settle(await session.publish(sent, signal));
      } catch (error) {
        // A session that ended hands its messages to the next one.
        if (await endedWith(session, error, this.#clock)) return;
        if (!this.#isOn(held, session)) return;
        const isAgain = await this.#pause(message, error, delays, signal);
        if (!this.#isOn(held, session)) return;
        if (!isAgain) return held.settle(error as Error);
      }
    }
  }

  /** Whether a message is still held, and went out on this session last. */
  #isOn(held: Held, session: Outlet): boolean {
    return this.#held.has(held) && held.session === session;
  }
}

/** Whether a call on a session failed because the session ended. */
export async function endedWith(
  session: Pick<BrokerSession, "closed">,
  error: unknown,
  clock: Clock,
): Promise<boolean> {
  if (!(error instanceof BrokerError && error.transient)) return false;
  const settled = new AbortController();
  const patience = clock.sleep(lossNoticeMs, settled.signal);
  try {
    return await Promise.race([session.closed.then(() => true), patience.then(() => false)]);
  } finally {
    settled.abort();
  }
}
