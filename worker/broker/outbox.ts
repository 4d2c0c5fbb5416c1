/**
 * Keeps messages until a broker has confirmed them, across lost connections and refusals.
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

/** The rest of {@link retryDelaysMs}. */
type Delays = Iterator<number, undefined>;

interface Held {
  readonly message: OutboundMessage;
  readonly delays: Delays;
  readonly signal: AbortSignal;
  session: Outlet | undefined;
  settle(result: PublishOutcome | Error): void;
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

  /** Waits for the next attempt; false when there is none. Never rejects. */
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
      // The broker may have a copy: consumers tell them apart by this property only.
      const sent =
        held.session === undefined
          ? message
          : { ...message, properties: { ...message.properties, [resentProperty]: true } };
      held.session = session;
      try {
        return held.settle(await session.publish(sent, signal));
      } catch (error) {
        // The next session sends it.
        if (await endedWith(session, error, this.#clock)) return;
        if (!this.#isOn(held, session)) return;
        const isAgain = await this.#pause(message, error, delays, signal);
        if (!this.#isOn(held, session)) return;
        if (!isAgain) return held.settle(error as Error);
      }
    }
  }

  /** Whether a message is held, and was sent on this session last. */
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
  return settlesWithin(session.closed, lossNoticeMs, clock);
}
