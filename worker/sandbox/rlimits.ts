/**
 * Resource limits as command prefixes: `prlimit(1)` runs inside the sandbox, `taskset(1)` outside.
 *
 * Inside, because RLIMIT_NPROC then counts the sandbox's own processes: each sandbox has a user
 * namespace of its own.
 */
import type { Limits } from "../protocol/resource-limits.ts";
import type { MemoryBound } from "./sandbox.ts";

/**
 * The hard limits that the worker itself runs under; `Infinity` where there is none. See
 * proc_pid_limits(5).
 */
export type HardLimits = Readonly<Record<RlimitName | FixedLimitName, number>>;

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
export const rlimitNames = Object.keys(rlimits) as readonly RlimitName[];

/** What the kernel calls it behind `RLIMIT_`, and prlimit(1) in its table: `AS` for memory. */
export function resourceOf(name: RlimitName): string {
  return rlimits[name].option.toUpperCase();
}

/**
 * Rlimits that are the same for every profile, by prlimit(1)'s names: with those that the worker
 * has inherited a tool could hold memory that no total counts, or put itself before others. See
 * getrlimit(2), by which RLIMIT_LOCKS bounds nothing, and RLIMIT_RTTIME nothing without
 * RLIMIT_RTPRIO.
 */
export const fixedLimits = {
  core: { bound: 0, row: "Max core file size" },
  /** Bytes of POSIX message queues. */
  msgqueue: { bound: 0, row: "Max msgqueue size" },
  /** Queued signals and POSIX timers, of all processes of the sandbox; some hundred bytes each. */
  sigpending: { bound: 1024, row: "Max pending signals" },
  /**
   * Bytes of each process that stay in memory whatever happens, also of mapped files; enough for
   * keys of ciphers.
   */
  memlock: { bound: 64 * 1024, row: "Max locked memory" },
  /** Real-time priority, and 20 minus the nice value, that a process may give itself. */
  rtprio: { bound: 0, row: "Max realtime priority" },
  nice: { bound: 0, row: "Max nice priority" },
} as const;

/**
 * Seconds of processor time between the signal that says the limit is reached, which ends who does
 * not handle it, and the kill: so it can be told from other kills.
 */
const cpuGraceSeconds = 1;

type FixedLimitName = keyof typeof fixedLimits;
export const fixedLimitNames = Object.keys(fixedLimits) as readonly FixedLimitName[];

/**
 * Reads the hard limits from the text of `/proc/self/limits`. A row that is missing counts as
 * unlimited.
 */
export function parseHardLimits(procSelfLimits: string): HardLimits {
  const hardLimit = ({ row }: { readonly row: string }): number => {
    const line = procSelfLimits.split("\n").find((candidate) => candidate.startsWith(row));
    const hard = line?.slice(row.length).trim().split(/\s+/)[1];
    return hard === undefined || hard === "unlimited" ? Infinity : Number(hard);
  };
  const facts = Object.entries({ ...rlimits, ...fixedLimits });
  return Object.fromEntries(facts.map(([name, fact]) => [name, hardLimit(fact)])) as HardLimits;
}

/** The limits with those that are really set: none of the worker's own is lifted. */
export function clampLimits(limits: Limits, hard: HardLimits): Limits {
  const set = rlimitNames.map((name) => [name, Math.min(limits[name], hard[name])] as const);
  return { ...limits, ...(Object.fromEntries(set) as Partial<Limits>) };
}

/** A limit as the kernel takes it. `Infinity` is none. */
export interface Rlimit {
  /** prlimit(1)'s name for it: `as` for memory. */
  readonly name: string;
  readonly soft: number;
  readonly hard: number;
}

/**
 * What a command is put under for `limits`, soft and hard alike but for processor time, clamped to
 * the current hard limits: a tighter limit of the worker's own stays, and never makes a call fail.
 * A limit of `Infinity` leaves the worker's own. Those of {@link fixedLimits} are set besides.
 *
 * @param memoryBound whether the limit of memory is one of them; without it `limits.memoryBytes` is
 *   left out
 */
export function rlimitsFor(
  limits: Limits,
  memoryBound: MemoryBound,
  hard: HardLimits,
): readonly Rlimit[] {
  const names =
    memoryBound === "address-space"
      ? rlimitNames
      : rlimitNames.filter((name) => name !== "memoryBytes");
  const bounded = clampLimits(limits, hard);
  const own = names.map((name) => {
    const later = name === "cpuSeconds" ? bounded[name] + cpuGraceSeconds : bounded[name];
    const { option } = rlimits[name];
    return { name: option, soft: bounded[name], hard: Math.min(later, hard[name]) };
  });
  const fixed = fixedLimitNames.map((name) => {
    const bound = Math.min(fixedLimits[name].bound, hard[name]);
    return { name, soft: bound, hard: bound };
  });
  return [...own, ...fixed];
}

/**
 * The prefix that puts a command under {@link rlimitsFor}.
 *
 * @param kind `soft` leaves the hard limits, so that the command can lift what it was put under
 */
export function limitPrefix(
  limits: Limits,
  memoryBound: MemoryBound,
  hard: HardLimits,
  kind: "for-good" | "soft" = "for-good",
): readonly string[] {
  const options = rlimitsFor(limits, memoryBound, hard).map((limit) => {
    const [soft, later] = [limit.soft, limit.hard].map((bound) =>
      bound === Infinity ? "unlimited" : bound,
    );
    return `--${limit.name}=${soft}:${kind === "soft" ? "" : later}`;
  });
  return ["/usr/bin/prlimit", ...options, "--"];
}

/**
 * Those of the CPUs that the worker may use, `limits.cpus` of them, that the sandbox of this `number` is
 * placed on, so that concurrent calls spread. Empty where there are no more CPUs than that, and so
 * nothing to bound.
 */
export function cpusFor(
  limits: Limits,
  cpuIds: readonly number[],
  number: number,
): readonly number[] {
  if (cpuIds.length <= limits.cpus) return [];
  return Array.from({ length: limits.cpus }, (_, index) => {
    const position = (number * limits.cpus + index) % cpuIds.length;
    return cpuIds[position] ?? 0;
  });
}

/**
 * The prefix that places a command on {@link cpusFor}. A process can undo it, but not where the
 * system-call filter refuses `sched_setaffinity`: so it goes before the program that sets the
 * filter.
 */
export function placement(
  limits: Limits,
  cpuIds: readonly number[],
  number: number,
): readonly string[] {
  const cpus = cpusFor(limits, cpuIds, number);
  return cpus.length === 0 ? [] : ["/usr/bin/taskset", "--cpu-list", cpus.join(",")];
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
