/**
 * Time as a parameter, so that tests decide what time it is.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** A source of time. */
export interface Clock {
  /** Epoch milliseconds; may jump. For timestamps that other machines read. */
  nowMs(): number;
  /** Milliseconds that never go back. For durations and deadlines. */
  monotonicMs(): number;
  /** Waits. Rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own time. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await sleep(ms, undefined, { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
