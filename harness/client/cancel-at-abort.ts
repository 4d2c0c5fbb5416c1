/**
 * Sends the cancel of a call at the first abort of its signals.
 */

/** Milliseconds that sending a cancel may take: the caller may want to leave. */
const sendingMs = 1_000;

/**
 * Calls `send` once at most. Disposing waits until it has ended; it never rejects.
 *
 * @param send publishes the cancel; best effort, so its failure changes nothing
 */
export function cancelAtAbort(
  signals: readonly (AbortSignal | undefined)[],
  send: (signal: AbortSignal) => Promise<unknown>,
): AsyncDisposable {
  let sent: Promise<unknown> | undefined;
  const onAbort = (): void => {
    sent ??= send(AbortSignal.timeout(sendingMs)).catch(() => undefined);
  };
  for (const signal of signals) {
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const signal of signals) signal?.removeEventListener("abort", onAbort);
      await sent;
    },
  };
}
