/**
 * Waits for something, but not for ever.
 */
import type { Clock } from "./clock.ts";

/** Whether `promise` settled within `ms`. Never rejects; leaves no timer behind. */
export async function settlesWithin(
  promise: Promise<unknown>,
  ms: number,
  clock: Pick<Clock, "sleep">,
): Promise<boolean> {
  const over = new AbortController();
  const settled = promise.then(
    () => true,
    () => true,
  );
  const timeout = clock.sleep(ms, over.signal).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([settled, timeout]);
  } finally {
    over.abort();
  }
}
