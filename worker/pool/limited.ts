/**
 * Bounds what heeds a signal in time.
 */
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Clock } from "../support/clock.ts";

/** Does it with a signal that aborts with the given one, or with a SandboxError after `ms`. */
export async function limited<Result>(
  clock: Pick<Clock, "sleep">,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const over = new AbortController();
  const done = new AbortController();
  void clock.sleep(ms, done.signal).then(
    () => over.abort(new SandboxError(`not ready after ${ms} ms`)),
    () => undefined,
  );
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    done.abort();
  }
}
