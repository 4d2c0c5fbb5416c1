/**
 * Time as a parameter, so that tests decide what time it is.
 */
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
  // Not that of node:timers/promises, which makes an error of its own whenever a sleep is ended.
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
