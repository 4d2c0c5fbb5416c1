/**
 * Which limit a command ended at that nobody ended it for: the kernel did, and says so by a signal.
 */
import type { LimitReached, Limits } from "../protocol/resource-limits.ts";
import type { ExitReport } from "./sandbox.ts";
import type { TotalUsage } from "./totals/totals.ts";

/**
 * Part of the limit that a command which the kernel killed for it may seem to have left. For this limit the kernel counts
 * whole ticks, which can be a fifth more than what it tells of time elsewhere; and the last look may be old.
 */
export const cpuSlack = 0.25;

/** The limit that a signal stands for, with what was used; undefined when it stands for none. */
export function limitOfSignal(
  signal: ExitReport["signal"],
  limits: Limits,
  { cpuMs, peakMemoryBytes, memoryKills }: TotalUsage,
): LimitReached | undefined {
  if (signal === "SIGXFSZ")
    return { limit: "fileSizeBytes", bound: limits.fileSizeBytes, peak: undefined };
  if (signal === "SIGKILL" && memoryKills > 0)
    return { limit: "memoryBytes", bound: limits.memoryBytes, peak: peakMemoryBytes };
  // Soft and hard limit are one number, for which the kernel kills (setrlimit(2)).
  const mayBeCpu = signal === "SIGXCPU" || signal === "SIGKILL";
  if (mayBeCpu && cpuMs !== undefined && cpuMs >= limits.cpuSeconds * 1000 * (1 - cpuSlack))
    return { limit: "cpuSeconds", bound: limits.cpuSeconds, peak: cpuMs / 1000 };
  return undefined;
}
