/**
 * Calls that a test awaits after other things.
 */

/**
 * The same call. When the test fails before it awaits it, it ends with its agent, and the test's
 * failure is the only one that is reported.
 */
export function awaitedLater<T>(call: Promise<T>): Promise<T> {
  call.catch(() => undefined);
  return call;
}
