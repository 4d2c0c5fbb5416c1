/**
 * Bounded waits.
 */
import { type Clock, systemClock } from "./clock.ts";

/** Made once: an error with its stack costs more than the rest of a wait. */
const disposed = new Error("nobody waits any more");

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
  using _abort = onAbort(signal, () => aborted.reject(signal.reason as Error));
  return await Promise.race([promise, aborted.promise]);
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
  const settled = promise.then(
    () => true,
    () => true,
  );
  const over = Promise.withResolvers<void>();
  using _timer = after(ms, clock, over.resolve);
  using _abort = signal && onAbort(signal, over.resolve);
  return await Promise.race([settled, over.promise.then(() => false)]);
}

/** Calls `work` with a signal that aborts with `signal`, or after `ms`. Leaves no timer behind. */
export async function withTimeout<Result>(
  ms: number,
  clock: Pick<Clock, "sleep">,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const over = new AbortController();
  const end = (): void => over.abort(signal.reason);
  if (signal.aborted) end();
  // First, so that others work while this begins to wait.
  const working = work(over.signal);
  using _timer = after(ms, clock, () => over.abort(new Error(`not done within ${ms} ms`)));
  using _abort = onAbort(signal, end);
  return await working;
}

/** Calls back when the time is over, unless it is disposed before. */
export function after(ms: number, clock: Pick<Clock, "sleep">, onOver: () => void): Disposable {
  if (clock.sleep === systemClock.sleep) {
    // An abort of its sleep would take longer.
    const timer = setTimeout(onOver, ms);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  }
  const done = new AbortController();
  const end = (): void => {
    if (!done.signal.aborted) onOver();
  };
  void clock.sleep(ms, done.signal).then(end, end);
  return { [Symbol.dispose]: () => done.abort(disposed) };
}

/** Calls back at the abort, or now where it was before; not after the disposal. */
export function onAbort(signal: AbortSignal, callBack: () => void): Disposable {
  const listen = (): void => callBack();
  if (signal.aborted) callBack();
  else signal.addEventListener("abort", listen, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", listen) };
}
