/**
 * Bounded waits.
 */
import type { Clock } from "./clock.ts";

/** Made once: an error with its stack costs more than the rest of a wait. */
const settledInTime = new Error("it settled in time");

/**
 * Settles as `promise`, or rejects with the signal's reason when that aborts first; then the result
 * of `promise` is ignored. Leaves no listener behind.
 */
export async function abortable<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  // A rejection after the abort is not an unhandled one.
  promise.catch(() => {});
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Whether `promise` settled within `ms` and before the signal aborted. Never rejects; leaves no
 * timer behind.
 */
export async function settlesWithin(
  promise: Promise<unknown>,
  ms: number,
  clock: Pick<Clock, "sleep">,
  signal?: AbortSignal,
): Promise<boolean> {
  const over = new AbortController();
  const waking = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  const settled = promise.then(
    () => true,
    () => true,
  );
  const timeout = clock.sleep(ms, waking).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([settled, timeout]);
  } finally {
    over.abort(settledInTime);
  }
}

/** Calls `work` with a signal that aborts with `signal`, or after `ms`. Leaves no timer behind. */
export async function withTimeout<Result>(
  ms: number,
  clock: Pick<Clock, "sleep">,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const over = new AbortController();
  const done = new AbortController();
  void clock.sleep(ms, done.signal).then(
    () => over.abort(new Error(`not done within ${ms} ms`)),
    () => undefined,
  );
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    done.abort(settledInTime);
  }
}
