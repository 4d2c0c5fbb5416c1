/**
 * Who keeps each limit of a sandbox of bubblewrap's, by what this host has.
 */
import type { CgroupControl } from "../cgroup/cgroup.ts";
import type { Enforcement } from "../sandbox.ts";

/** What decides it; each was tried. */
export interface Keepers {
  /** What control groups bound and count; none where there are no groups. */
  readonly group: Readonly<Record<CgroupControl, boolean>>;
  /** Whether the worker sees a sandbox's processes, with their time and memory. */
  readonly seesProcesses: boolean;
  /** Whether there is a system-call filter. */
  readonly isFiltered: boolean;
}

/** Who keeps each limit of the sandbox as a whole; what rlimits bound of each process does not count for a sum. */
export function enforcementOf({ group, seesProcesses, isFiltered }: Keepers): Enforcement {
  return {
    memoryBytes: group.memory ? "kernel" : seesProcesses ? "guard" : "none",
    // A group counts time, and bounds its pace only.
    cpuSeconds: group.cpu || seesProcesses ? "guard" : "none",
    cpus: isFiltered ? "kernel" : "none",
    processes: "kernel",
    openFiles: "kernel",
    fileSizeBytes: "kernel",
    tmpBytes: "kernel",
    diskBytes: "guard",
    files: "guard",
    statusBytes: "guard",
  };
}
