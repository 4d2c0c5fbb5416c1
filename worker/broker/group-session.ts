/**
 * The session of a broker with queues: consumers of the group's queues, and the routes into them.
 */
import { backoffDelays } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { abortable } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import {
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type SessionEnd,
  type UnsettledCalls,
} from "./broker.ts";
import type { DeliveryBuffer } from "./delivery-buffer.ts";
import { type BrokerLog, reasonOf } from "./log.ts";
import type { Routes } from "./routes.ts";

/** Bounds of the delay between two attempts to consume a queue. */
const reopenBackoff = { baseMs: 500, capMs: 15_000 };

export interface Consumer {
  /** Whether calls arrive. */
  readonly isOpen: boolean;
  open(signal: AbortSignal): Promise<void>;
  /** Opens it as soon as the broker permits. Never rejects. */
  reopen(cause: unknown): Promise<void>;
  /** Stops consuming; what arrived can be settled. Never rejects. */
  cancel(): Promise<void>;
}

/** What the consumers of every broker need. */
export interface ConsumerOptions {
  /** The queue's name in its group. */
  readonly queue: string;
  /** Unsettled deliveries at most, calls of lost connections included. */
  readonly limit: number;
  readonly unsettled: UnsettledCalls;
  /** Deliveries of a call before the broker dead-letters it, where the queue does not report it. */
  readonly maxDeliveries: number;
  /** Routes the calls of the queue's tools into it. Throws BrokerError. */
  readonly route: (signal: AbortSignal) => Promise<void>;
  readonly buffer: DeliveryBuffer;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

export interface GroupSessionParts extends Pick<
  BrokerSession,
  "publish" | "subscribe" | "mayReplay"
> {
  readonly connection: { readonly closed: Promise<SessionEnd>; readonly ended: AbortSignal };
  readonly consumers: readonly Consumer[];
  readonly routes: Routes;
  readonly deliveries: DeliveryBuffer;
  /** Runs before the queues are consumed. Throws BrokerError. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Reasons beside queues that cannot be consumed. */
  notReadyReasons?(): readonly string[];
  /** Closes the connection, with the consumers. */
  close(): Promise<void>;
}

/** Consumes from the first served tool on. */
export class GroupSession implements BrokerSession {
  readonly redelivers = true;
  readonly mayReplay: boolean;
  readonly deliveries: DeliveryBuffer;
  readonly closed: Promise<SessionEnd>;
  readonly #parts: GroupSessionParts;
  #consuming: Promise<void> | undefined;
  #pausing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: GroupSessionParts) {
    this.#parts = parts;
    this.mayReplay = parts.mayReplay ?? false;
    this.deliveries = parts.deliveries;
    this.closed = parts.connection.closed;
  }

  /** Serves the first tools. */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    this.#parts.routes.want(tools);
    if (tools.length > 0) await this.#consume(signal);
    this.#parts.connection.ended.throwIfAborted();
  }

  get notReadyReasons(): readonly string[] {
    const { consumers, notReadyReasons } = this.#parts;
    const isServing = this.#consuming !== undefined && this.#pausing === undefined;
    const isWithoutQueue = isServing && !consumers.some(({ isOpen }) => isOpen);
    return [
      ...(isWithoutQueue ? ["no queue of the group can be consumed"] : []),
      ...(notReadyReasons?.() ?? []),
    ];
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    await this.#consume(signal);
    await this.#parts.routes.add(toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#parts.routes.delete(toolName, signal);
  }

  publish: BrokerSession["publish"] = (message, signal) => this.#parts.publish(message, signal);

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    checkPattern(pattern);
    return this.#parts.subscribe(pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#stopIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.deliveries.complete();
    this.#closing ??= this.#parts.close();
    await this.#closing;
  }

  /** Throws when no queue of the group can be consumed. */
  async #consume(signal: AbortSignal): Promise<void> {
    this.#consuming ??= this.#openConsumers().catch((error: unknown) => {
      this.#consuming = undefined;
      throw error;
    });
    await abortable(this.#consuming, signal);
  }

  async #openConsumers(): Promise<void> {
    const { prepare, consumers, connection } = this.#parts;
    await prepare?.(connection.ended);
    await openSome(consumers, connection.ended);
  }

  async #stopIntake(): Promise<void> {
    await Promise.all(this.#parts.consumers.map((consumer) => consumer.cancel()));
    this.deliveries.complete();
  }
}

/** Refuses `ab*`, a prefix to Solace alone, and `>` in the middle. Throws BrokerError. */
export function checkPattern(pattern: string): void {
  const levels = pattern.split("/");
  const odd = levels.find(
    (level, index) =>
      (level.includes("*") && level !== "*") || (level === ">" && index < levels.length - 1),
  );
  if (odd === undefined) return;
  const rule = `"${odd}" must be a whole level "*", or ">" at the end`;
  throw new BrokerError(`A worker cannot subscribe to ${pattern}: ${rule}`, { transient: false });
}

/** Opens consumers, refused ones as soon as the broker permits. Throws when it refuses all. */
export async function openSome(
  consumers: readonly Pick<Consumer, "open" | "reopen">[],
  signal: AbortSignal,
): Promise<void> {
  const results = await Promise.allSettled(consumers.map((consumer) => consumer.open(signal)));
  signal.throwIfAborted();
  const refused = consumers.flatMap((consumer, index) => {
    const result = results[index];
    return result?.status === "rejected" ? [{ consumer, cause: result.reason as unknown }] : [];
  });
  const [first] = refused;
  if (first !== undefined && refused.length === consumers.length) throw first.cause;
  for (const { consumer, cause } of refused) void consumer.reopen(cause);
}

export interface ReopeningParts {
  /** The queue's name on the broker. */
  readonly address: string;
  open(): Promise<void>;
  /** Aborts when the queue is not to be consumed any more. */
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: BrokerLog;
}

/** Tries until one attempt succeeds or the signal aborts. Never rejects. */
export async function reopen(parts: ReopeningParts, cause: unknown): Promise<void> {
  const { address: queue, open, signal, clock, log } = parts;
  let failure = cause;
  for (const delay of backoffDelays({ ...reopenBackoff, random: Math.random })) {
    const delayMs = Math.round(delay);
    logEvent(log, "queue.consume_refused", { queue, delayMs, reason: reasonOf(failure) });
    try {
      await clock.sleep(delayMs, signal);
      await open();
      logEvent(log, "queue.consume_resumed", { queue });
      return;
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
    }
  }
}
