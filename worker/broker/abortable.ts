/**
 * Waiting for something that cannot be called off itself.
 */

/**
 * Waits for `promise`, or rejects with the signal's reason as soon as it aborts. Leaves no listener behind. The work
 * behind the promise goes on; what it comes to is then ignored.
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
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
