/**
 * Runs a command to its end, its time limit or the caller's signal, whichever comes first.
 */
import type { Execution, ExitReport } from "../../sandbox/sandbox.ts";

/**
 * Milliseconds from SIGTERM to SIGKILL: long enough for a tool to tidy up, short enough for the
 * answer to be out 5 seconds after the time limit, well before the agent gives up.
 */
export const stopGraceMs = 3_000;

/** How a run ended; the first cause wins. */
export interface Run {
  readonly cause: "exited" | "time-limit";
  readonly report: ExitReport;
}

/**
 * Waits for the end of an execution. Throws the signal's reason, after everything was killed, when
 * it aborts before the time limit.
 */
export async function runToExit(
  execution: Execution,
  limitMs: number,
  signal: AbortSignal,
): Promise<Run> {
  const limit = Promise.withResolvers<"time-limit">();
  const timer = setTimeout(() => limit.resolve("time-limit"), limitMs);
  const aborted = Promise.withResolvers<"aborted">();
  const onAbort = (): void => aborted.resolve("aborted");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const cause = await Promise.race([
      execution.exited.then(() => "exited" as const),
      limit.promise,
      aborted.promise,
    ]);
    if (cause === "aborted") {
      await execution.stop(0);
      throw signal.reason;
    }
    if (cause === "exited") return { cause, report: await execution.exited };
    // Who gives up in the grace does not wait for its end.
    const hurried = aborted.promise.then(() => execution.stop(0));
    return { cause, report: await Promise.race([execution.stop(stopGraceMs), hurried]) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
