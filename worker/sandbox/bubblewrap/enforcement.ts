/**
 * Who keeps each limit of a sandbox of bubblewrap's, by what was tried on this host.
 */
import type { LimitName, Mechanism } from "../../protocol/resource-limits.ts";
import type { CgroupControl } from "../cgroup/cgroup.ts";
import type { Enforcement } from "../sandbox.ts";
import type { TrialObservation } from "./probe/probe-script.ts";

/** What decides it; each was tried. */
export interface Keepers {
  /** What control groups bound and count; none where there are no groups. */
  readonly group: Readonly<Record<CgroupControl, boolean>>;
  /** Whether the worker sees a sandbox's processes, with their time and memory. */
  readonly seesProcesses: boolean;
  /** Whether the system-call filter is on. */
  readonly isFiltered: boolean;
  /** See {@link unkeptLimits}. */
  readonly unkept: readonly LimitName[];
}

/**
 * Limits that trial sandboxes got past, or did not have, though the kernel should have kept them
 * without a group.
 */
export function unkeptLimits(observations: readonly TrialObservation[]): readonly LimitName[] {
  return observations.flatMap(({ wrongLimits, startedProcesses, endless }) => [
    ...wrongLimits,
    ...(startedProcesses === undefined ? (["processes"] as const) : []),
    ...(endless.length > 0 ? (["tmpBytes"] as const) : []),
  ]);
}

/**
 * Who keeps each limit of the sandbox as a whole; what rlimits bound of each process does not count
 * for a sum.
 */
export function enforcementOf({ group, seesProcesses, isFiltered, unkept }: Keepers): Enforcement {
  const kernel = (name: LimitName): Mechanism => (unkept.includes(name) ? "none" : "kernel");
  return {
    memoryBytes: group.memory ? "kernel" : seesProcesses ? "guard" : "none",
    // A group counts time, and bounds its pace only.
    cpuSeconds: group.cpu || seesProcesses ? "guard" : "none",
    cpus: isFiltered ? "kernel" : "none",
    processes: group.processes ? "kernel" : kernel("processes"),
    openFiles: kernel("openFiles"),
    fileSizeBytes: kernel("fileSizeBytes"),
    tmpBytes: kernel("tmpBytes"),
    diskBytes: "guard",
    files: "guard",
    statusBytes: "guard",
  };
}
