/**
 * The files of both versions of control groups, as data.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { CgroupControl, CgroupUsage } from "./cgroup.ts";

/** Processes of bubblewrap itself in a group: the outer one, and the first one inside. */
export const bubblewrapProcesses = 2;

/** Limits that a group can enforce. */
export type CgroupLimits = Pick<Limits, "memoryBytes" | "processes">;

/** A file of a group, and its value before the first process is in the group. */
export interface CgroupSetting {
  readonly control: CgroupControl;
  readonly file: string;
  readonly value: number;
  /** Whether some kernels do not have it. */
  readonly isOptional?: boolean;
}

/** Reads a file of a group; undefined where there is none. */
export type CgroupReader = (control: CgroupControl, file: string) => string | undefined;

/** One version. */
export interface CgroupDialect {
  readonly version: 1 | 2;
  /** The kernel's controllers; undefined where every group has the control. */
  readonly controllers: Readonly<Record<CgroupControl, string | undefined>>;
  /** In the order in which the kernel takes them. */
  settings(limits: CgroupLimits): readonly CgroupSetting[];
  /** Files of bytes of memory: those charged now, and the most. */
  readonly memoryFiles: { readonly inUse: string; readonly peak: string };
  usage(read: CgroupReader): CgroupUsage;
}

/**
 * admin-guide/cgroup-v1/memory.rst, pids.rst and cpuacct.rst of the kernel. Without a limit for
 * memory and swap together, a group that does not swap comes nearest.
 */
export const cgroupV1: CgroupDialect = {
  version: 1,
  controllers: { memory: "memory", processes: "pids", cpu: "cpuacct" },
  settings: ({ memoryBytes, processes }) => [
    { control: "memory", file: "memory.swappiness", value: 0, isOptional: true },
    { control: "memory", file: "memory.limit_in_bytes", value: memoryBytes },
    {
      control: "memory",
      file: "memory.memsw.limit_in_bytes",
      value: memoryBytes,
      isOptional: true,
    },
    { control: "processes", file: "pids.max", value: processes + bubblewrapProcesses },
  ],
  memoryFiles: { inUse: "memory.usage_in_bytes", peak: "memory.max_usage_in_bytes" },
  usage: (read) => ({
    cpuMs: scaled(read("cpu", "cpuacct.usage"), 1e-6),
    peakMemoryBytes: scaled(read("memory", "memory.max_usage_in_bytes"), 1),
    peakProcesses: withoutBubblewrap(read("processes", "pids.peak")),
    memoryKills: counted(read("memory", "memory.oom_control"), "oom_kill"),
  }),
};

/** admin-guide/cgroup-v2.rst of the kernel. Exhausted memory kills the whole group. */
export const cgroupV2: CgroupDialect = {
  version: 2,
  controllers: { memory: "memory", processes: "pids", cpu: undefined },
  settings: ({ memoryBytes, processes }) => [
    { control: "memory", file: "memory.max", value: memoryBytes },
    { control: "memory", file: "memory.swap.max", value: 0, isOptional: true },
    { control: "memory", file: "memory.oom.group", value: 1, isOptional: true },
    { control: "processes", file: "pids.max", value: processes + bubblewrapProcesses },
  ],
  memoryFiles: { inUse: "memory.current", peak: "memory.peak" },
  usage: (read) => ({
    cpuMs: scaled(fieldOf(read("cpu", "cpu.stat"), "usage_usec"), 1e-3),
    peakMemoryBytes: scaled(read("memory", "memory.peak"), 1),
    peakProcesses: withoutBubblewrap(read("processes", "pids.peak")),
    memoryKills: counted(read("memory", "memory.events"), "oom_kill"),
  }),
};

/** A file that is one number. */
function scaled(text: string | undefined, factor: number): number | undefined {
  return text !== undefined && /^\d+\s*$/.test(text) ? Number(text) * factor : undefined;
}

function withoutBubblewrap(peak: string | undefined): number | undefined {
  const processes = scaled(peak, 1);
  return processes && Math.max(0, processes - bubblewrapProcesses);
}

function counted(text: string | undefined, key: string): number {
  return scaled(fieldOf(text, key), 1) ?? 0;
}

/** The value of a key in a file of lines `key value`. */
function fieldOf(text: string | undefined, key: string): string | undefined {
  const line = text?.split("\n").find((candidate) => candidate.startsWith(`${key} `));
  return line?.slice(key.length + 1);
}
