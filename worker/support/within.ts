/**
 * Waits for something, but not for ever.
 */
import type { Clock } from "./clock.ts";

/** Made once: an error costs more than everything else here. */
const settledInTime = new Error("it settled in time");

/**
 * Waits for `promise`, or rejects with the signal's reason as soon as it aborts. Leaves no listener
 * behind. The work behind the promise goes on; what it comes to is then ignored.
 */
export async function abortable<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  // Whatever happens to the work after nobody waits for it any more is nobody's failure.
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

/**
 * Does `work` with a signal that aborts with `signal`, or with an error after `ms`. Leaves no timer
 * behind.
 */
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
