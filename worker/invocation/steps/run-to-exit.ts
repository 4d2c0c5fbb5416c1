/**
 * Runs a command until its exit, its time limit or an abort.
 */
import type { Execution, ExitReport } from "../../sandbox/sandbox.ts";
import { onAbort } from "../../support/timeout.ts";

/**
 * Milliseconds from SIGTERM to SIGKILL, at the time limit and at the caller's cancel: enough for a
 * tool's cleanup, with the answer published within 5 seconds after the time limit.
 */
export const stopGraceMs = 3_000;

/** The end of a run, by its first cause. */
export interface Run {
  readonly cause: "exited" | "time-limit" | "cancelled";
  readonly report: ExitReport;
}

/**
 * Time limit and cancel give the command its grace. A shutdown kills all processes at once; before
 * any other end it then throws its signal's reason.
 *
 * @param cancel the caller's, if it can cancel the call
 */
export async function runToExit(
  execution: Execution,
  limitMs: number,
  shutdown: AbortSignal,
  cancel: AbortSignal = shutdown,
): Promise<Run> {
  const limit = Promise.withResolvers<"time-limit">();
  const timer = setTimeout(() => limit.resolve("time-limit"), limitMs);
  using shutDown = endOf(shutdown, "shutdown" as const);
  using cancelled = endOf(cancel, "cancelled" as const);
  try {
    const exited = execution.exited.then(() => "exited" as const);
    // In order: of several that have come already, the first counts.
    const ends = [exited, shutDown.promise, cancelled.promise, limit.promise];
    const cause = await Promise.race(ends);
    if (cause === "shutdown") {
      await execution.stop(0);
      throw shutdown.reason;
    }
    if (cause === "exited") return { cause, report: await execution.exited };
    const killed = shutDown.promise.then(() => execution.stop(0));
    return { cause, report: await Promise.race([execution.stop(stopGraceMs), killed]) };
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves to the cause at the abort. The owner disposes it. */
function endOf<Cause>(
  signal: AbortSignal,
  cause: Cause,
): Disposable & { readonly promise: Promise<Cause> } {
  const { promise, resolve } = Promise.withResolvers<Cause>();
  const listening = onAbort(signal, () => resolve(cause));
  return { promise, [Symbol.dispose]: () => listening[Symbol.dispose]() };
}
