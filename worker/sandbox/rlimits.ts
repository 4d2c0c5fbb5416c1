/**
 * Resource limits as command prefixes: `prlimit(1)` runs inside the sandbox, `taskset(1)` outside.
 *
 * Inside, because RLIMIT_NPROC then counts the sandbox's own processes: each sandbox has a user namespace of its own.
 */
import type { Limits } from "../protocol/resource-limits.ts";
import type { MemoryBound } from "./sandbox.ts";

/** The hard limits that the worker itself runs under; `Infinity` where there is none. See proc_pid_limits(5). */
export type HardLimits = Readonly<Record<RlimitName, number>>;

/** Our limits that are rlimits, with their prlimit(1) option and their row in /proc/self/limits. */
const rlimits = {
  memoryBytes: { option: "as", row: "Max address space" },
  cpuSeconds: { option: "cpu", row: "Max cpu time" },
  fileSizeBytes: { option: "fsize", row: "Max file size" },
  openFiles: { option: "nofile", row: "Max open files" },
  processes: { option: "nproc", row: "Max processes" },
} as const;

/** A limit of ours that is an rlimit. */
export type RlimitName = keyof typeof rlimits;
const rlimitNames = Object.keys(rlimits) as readonly RlimitName[];

/** Reads the hard limits from the text of `/proc/self/limits`. A row that is missing counts as unlimited. */
export function parseHardLimits(procSelfLimits: string): HardLimits {
  const hardLimit = (row: string): number => {
    const line = procSelfLimits.split("\n").find((candidate) => candidate.startsWith(row));
    const hard = line?.slice(row.length).trim().split(/\s+/)[1];
    return hard === undefined || hard === "unlimited" ? Infinity : Number(hard);
  };
  return Object.fromEntries(
    rlimitNames.map((name) => [name, hardLimit(rlimits[name].row)]),
  ) as HardLimits;
}

/**
 * The prefix that puts a command under `limits`, soft and hard alike, clamped to the current hard limits: a tighter
 * limit of the worker's own stays, and never makes a call fail. A limit of `Infinity` leaves the worker's own.
 *
 * @param memoryBound whether the limit of memory is one of them; without it `limits.memoryBytes` is left out
 */
export function limitPrefix(
  limits: Limits,
  memoryBound: MemoryBound,
  hard: HardLimits,
): readonly string[] {
  const names =
    memoryBound === "address-space"
      ? rlimitNames
      : rlimitNames.filter((name) => name !== "memoryBytes");
  const options = names.map((name) => {
    const least = Math.min(limits[name], hard[name]);
    const value = least === Infinity ? "unlimited" : least;
    return `--${rlimits[name].option}=${value}:${value}`;
  });
  return ["/usr/bin/prlimit", ...options, "--core=0:0", "--"];
}

/**
 * The prefix that places a command on `limits.cpus` of the CPUs that the worker may use, from the `turn`th on, so that
 * concurrent calls spread. Empty where there are no more CPUs than that, and so nothing to bound. A process can undo it, but
 * not where the system-call filter refuses `sched_setaffinity`: so it goes before the program that sets the filter.
 */
export function placement(
  limits: Limits,
  cpuIds: readonly number[],
  turn: number,
): readonly string[] {
  if (cpuIds.length <= limits.cpus) return [];
  const chosen = Array.from(
    { length: limits.cpus },
    (_, index) => cpuIds[(turn * limits.cpus + index) % cpuIds.length],
  );
  return ["/usr/bin/taskset", "--cpu-list", chosen.join(",")];
}

/** CPU numbers from a kernel list such as `0-3,8` (`Cpus_allowed_list` in /proc/self/status). */
export function parseCpuList(list: string): readonly number[] {
  return list
    .trim()
    .split(",")
    .flatMap((range) => {
      const [first, last] = range.split("-").map(Number);
      if (first === undefined || Number.isNaN(first)) return [];
      return Array.from({ length: (last ?? first) - first + 1 }, (_, index) => first + index);
    });
}

/** The limits of a profile that the worker's own hard limits make tighter than the profile says. */
export function clampedLimits(limits: Limits, hard: HardLimits): readonly RlimitName[] {
  return rlimitNames.filter((name) => hard[name] < limits[name]);
}
