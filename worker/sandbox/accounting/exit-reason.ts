/**
 * Which limit a command ended at that nobody ended it for: the kernel did, and says so by a signal.
 */
import type { LimitReached, Limits } from "../../protocol/resource-limits.ts";
import type { ExitReport } from "../sandbox.ts";
import type { TotalUsage } from "./sandbox-usage.ts";

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
  // SIGXCPU comes with the limit (setrlimit(2)), for which the kernel counts whole ticks: these can
  // be more than what it tells of time elsewhere. SIGKILL comes a little later, to who does not
  // heed it.
  const bound = limits.cpuSeconds;
  const used = cpuMs === undefined ? undefined : cpuMs / 1000;
  const isCpu =
    signal === "SIGXCPU" || (signal === "SIGKILL" && used !== undefined && used >= bound);
  return isCpu ? { limit: "cpuSeconds", bound, peak: used } : undefined;
}
