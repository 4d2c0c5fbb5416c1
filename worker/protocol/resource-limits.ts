/**
 * The limits of a sandbox, with their names in the worker, in the operator's files and in answers.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Unit of a limit in answers. */
export type LimitUnit = "bytes" | "seconds" | "count";

/** Names and accepted values of one limit. */
export interface LimitFacts {
  /** In answers. */
  readonly word: string;
  readonly unit: LimitUnit;
  /** In the manifest and the profiles file. */
  readonly field: string;
  /** Value of 1 in the field, in the limit's unit. */
  readonly scale: number;
  /** Least and greatest integer that the field accepts. */
  readonly min: number;
  readonly max: number;
  readonly description: string;
}

const mebibytes = { unit: "bytes", scale: MiB } as const;
const plain = { unit: "count", scale: 1 } as const;

/** In the order of the documentation. Limits cover the whole sandbox unless described otherwise. */
export const limitFacts = {
  memoryBytes: {
    ...{ word: "memory", field: "memory_mb", min: 16, max: 1_048_576, ...mebibytes },
    description:
      "memory of the sandbox, tmpfs files included; and address space of each Python process",
  },
  cpuSeconds: {
    ...{ word: "cpu_time", field: "cpu_seconds", unit: "seconds", scale: 1, min: 1, max: 86_400 },
    description: "processor time of all processes together",
  },
  cpus: {
    ...{ word: "cpus", field: "cpus", min: 1, max: 1_024, ...plain },
    description: "processors that the processes may run on",
  },
  processes: {
    ...{ word: "processes", field: "processes", min: 4, max: 32_768, ...plain },
    description: "processes and threads",
  },
  openFiles: {
    ...{ word: "open_files", field: "open_files", min: 16, max: 1_048_576, ...plain },
    description: "open files of each process",
  },
  fileSizeBytes: {
    ...{ word: "file_size", field: "file_size_mb", min: 1, max: 1_048_576, ...mebibytes },
    description: "largest file, and largest output",
  },
  tmpBytes: {
    ...{ word: "tmp", field: "tmp_mb", min: 1, max: 1_048_576, ...mebibytes },
    description: "`/tmp`, `/dev/shm` and, where there is one, `/var`, each",
  },
  diskBytes: {
    ...{ word: "disk", field: "disk_mb", min: 1, max: 1_048_576, ...mebibytes },
    description: "what the tool may add to its work directory",
  },
  files: {
    ...{ word: "files", field: "files", min: 16, max: 10_000_000, ...plain },
    description: "files and directories that the tool may make, on disk and on tmpfs",
  },
  statusBytes: {
    ...{ word: "status", field: "status_kb", unit: "bytes", scale: KiB, min: 1, max: 1_048_576 },
    description: "what the tool may write to its status pipe",
  },
} as const satisfies Record<string, LimitFacts>;

export type LimitName = keyof typeof limitFacts;

/** In the order of the documentation. */
export const limitNames = Object.keys(limitFacts) as readonly LimitName[];

/** A bound for each limit, in the unit of {@link limitFacts}. */
export type Limits = Readonly<Record<LimitName, number>>;

/**
 * Enforcer of a limit. `kernel`: it cannot be exceeded. `guard`: the worker samples usage and kills
 * the sandbox, which can exceed it between two samples. `none`: this host does not enforce it.
 */
export type Mechanism = "kernel" | "guard" | "none";

/** A tool that its gateway has refused too often. */
export interface RefusalsReached {
  readonly limit: "toolCalls";
  readonly bound: number;
}

/** A limit of the sandbox that ended a call. */
export interface LimitReached {
  readonly limit: LimitName;
  readonly bound: number;
  /** Measured peak in the limit's unit; undefined where unmeasured. */
  readonly peak: number | undefined;
}
