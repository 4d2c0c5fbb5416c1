/**
 * Consumes a queue again that the broker stopped to deliver from. The session goes on meanwhile:
 * answers go out through it.
 */
import { backoffDelays } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { type BrokerLog, reasonOf } from "./log.ts";

/** Bounds of the delay between two attempts. */
const reopenBackoff = { baseMs: 500, capMs: 15_000 };

/** What reopening takes. */
export interface ReopeningParts {
  /** The queue's name on the broker, for the log. */
  readonly address: string;
  /** Throws BrokerError. */
  open(): Promise<void>;
  /** Aborts when the queue is not to be consumed any more. */
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: BrokerLog;
}

/** One attempt after the other until one succeeds or the signal aborts. Never rejects. */
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

/** Why a session that consumes none of its queues is not ready. */
export const withoutQueue = "no queue of the group can be consumed";

/** A consumer of one queue. */
export interface Reopenable {
  /** Throws BrokerError. */
  open(signal: AbortSignal): Promise<void>;
  /** Opens it as soon as the broker permits. Never rejects. */
  reopen(cause: unknown): Promise<void>;
}

/**
 * Opens consumers, and those that the broker refuses as soon as it permits. Throws BrokerError when
 * it refuses all of them.
 */
export async function openSome(
  consumers: readonly Reopenable[],
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
