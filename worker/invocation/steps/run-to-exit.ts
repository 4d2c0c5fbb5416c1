/**
 * Runs a command until its exit, its time limit or an abort.
 */
import type { Execution, ExitReport } from "../../sandbox/sandbox.ts";

/**
 * Milliseconds from SIGTERM to SIGKILL: enough for a tool's cleanup, with the answer published
 * within 5 seconds after the time limit.
 */
export const stopGraceMs = 3_000;

/** The end of a run, by its first cause. */
export interface Run {
  readonly cause: "exited" | "time-limit";
  readonly report: ExitReport;
}

/** On an abort before the time limit: kills all processes, then throws the signal's reason. */
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
    // An abort during the grace period kills immediately.
    const killed = aborted.promise.then(() => execution.stop(0));
    return { cause, report: await Promise.race([execution.stop(stopGraceMs), killed]) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
