/**
 * Waits for something, but not for ever.
 */
import type { Clock } from "./clock.ts";

/** Made once: an error costs more than everything else here. */
const settledInTime = new Error("it settled in time");

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
