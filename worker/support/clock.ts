/**
 * Time as a parameter, so that tests control it.
 */
/** A source of time. */
export interface Clock {
  /** Epoch milliseconds; may jump. For timestamps that other machines read. */
  nowMs(): number;
  /** Monotonic milliseconds, for durations and deadlines. */
  monotonicMs(): number;
  /** Waits. Rejects with the signal's reason on abort. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's time. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  // node:timers/promises creates an error for each cancelled sleep.
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    const wake = (): void => resolve();
    signal?.addEventListener("abort", wake, { once: true });
    await promise;
    clearTimeout(timer);
    signal?.removeEventListener("abort", wake);
    signal?.throwIfAborted();
  },
};
