/**
 * Waits for something, but not for ever.
 */
import type { Clock } from "./clock.ts";

/** Made once: an error costs more than everything else here. */
const settledInTime = new Error("it settled in time");

/** The promise, or the signal's reason as soon as it aborts. What the promise comes to then is nobody's any more. */
export async function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Whether `promise` settled within `ms` and before the signal aborted. Never rejects; leaves no timer behind. */
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
