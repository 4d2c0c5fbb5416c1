/**
 * Resource limits as command prefixes: `prlimit(1)` runs inside the sandbox, `taskset(1)` outside.
 *
 * Inside, because RLIMIT_NPROC then counts the sandbox's own processes: each sandbox has a user
 * namespace of its own.
 */
import type { Limits } from "../protocol/resource-limits.ts";
import type { MemoryBound } from "./sandbox.ts";

/** The worker's own hard limits; `Infinity` for none. See proc_pid_limits(5). */
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
 * Rlimits of every profile, by prlimit(1)'s names. The worker's own would let a tool hold uncounted
 * memory, or raise its priority. RLIMIT_LOCKS bounds nothing; see getrlimit(2).
 */
export const fixedLimits = {
  core: { bound: 0, row: "Max core file size" },
  /** Bytes of POSIX message queues. */
  msgqueue: { bound: 0, row: "Max msgqueue size" },
  /** Queued signals and POSIX timers, of all processes of the sandbox; some hundred bytes each. */
  sigpending: { bound: 1024, row: "Max pending signals" },
  /** Locked bytes of each process, also of mapped files; enough for keys of ciphers. */
  memlock: { bound: 64 * 1024, row: "Max locked memory" },
  /** Real-time priority, and 20 minus the nice value, that a process may give itself. */
  rtprio: { bound: 0, row: "Max realtime priority" },
  nice: { bound: 0, row: "Max nice priority" },
} as const;

/** Seconds of processor time between SIGXCPU and the kill, which tells it from other kills. */
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

/** The limits, clamped to the worker's hard limits. */
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
 * Rlimits for `limits` and {@link fixedLimits}, soft and hard alike but for processor time. The
 * worker's hard limits clamp them, so that a tighter one fails no call. `Infinity` sets none.
 *
 * @param memoryBound `limits.memoryBytes` counts only with `address-space`
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
    // The kernel takes whole seconds; who looks at the total keeps a fraction.
    const bound = Math.ceil(bounded[name]);
    const later = name === "cpuSeconds" ? bound + cpuGraceSeconds : bound;
    const { option } = rlimits[name];
    return { name: option, soft: bound, hard: Math.min(later, hard[name]) };
  });
  const fixed = fixedLimitNames.map((name) => {
    const bound = Math.min(fixedLimits[name].bound, hard[name]);
    return { name, soft: bound, hard: bound };
  });
  return [...own, ...fixed];
}

/**
 * The command prefix that sets {@link rlimitsFor}.
 *
 * @param kind `soft` leaves the hard limits, so that the command can lift its limits
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
 * CPUs for the sandbox of this number: `limits.cpus` of the worker's, so that concurrent calls
 * spread. Empty where the worker has no more CPUs than that.
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
 * The command prefix that places a command on {@link cpusFor}. It precedes the program that sets
 * the system-call filter, which refuses `sched_setaffinity`.
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

/** Names of the limits that exceed the worker's hard limits. */
export function clampedLimits(limits: Limits, hard: HardLimits): readonly RlimitName[] {
  return rlimitNames.filter((name) => hard[name] < limits[name]);
}
