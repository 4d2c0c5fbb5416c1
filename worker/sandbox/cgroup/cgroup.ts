/**
 * The contract of control groups: the kernel bounds and counts a sandbox's resources, where this
 * worker may make groups.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import type { CgroupFiles } from "./files.ts";

/** What a control group can bound or count. */
export type CgroupControl = "memory" | "processes" | "cpu";

/**
 * Control groups for sandboxes on this host. Its owner disposes it after the last sandbox is gone;
 * then no group is left, and the worker is again where it was.
 */
export interface Cgroups extends AsyncDisposable {
  /** One line for the operator. */
  readonly description: string;
  readonly version: 1 | 2;
  /** `memory` and `processes` are bounded, `cpu` time is counted. */
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  /** Milliseconds of {@link SandboxCgroup.add} in a trial. */
  readonly joinMs: number;
  /**
   * A group with limits, new or as good as new, until the caller discards it. Throws SandboxError.
   */
  create(limits: Limits, signal?: AbortSignal): Promise<SandboxCgroup>;
  /**
   * Takes a group of {@link create} back when its sandbox is gone, and disposes or reuses it in the
   * background: it may be another sandbox's from now on.
   */
  discard(group: SandboxCgroup): void;
}

/**
 * The group of one sandbox. Dispose it when the sandbox's last process is gone: it kills what is
 * left. Never rejects, and reports a group that cannot be removed elsewhere.
 */
export interface SandboxCgroup extends AsyncDisposable {
  /**
   * Moves a process without children into the group. Rejects with SandboxError when the kernel
   * refuses: kill the process then. One that is gone is moved.
   */
  add(pid: number): Promise<void>;
  /**
   * Processes that live in the group; 0 for each of another pid namespace. Missing where another
   * program keeps the group.
   */
  processes?(): readonly number[];
  /** Usage so far. Call it before the group is disposed. */
  read(): CgroupUsage;
  /** Kills every process in the group. One that is being forked may escape until the disposal. */
  kill(): void;
}

/** Usage of a group. Undefined where the kernel does not count. */
export interface CgroupUsage {
  /** CPU time of all processes, ended ones included. */
  readonly cpuMs: number | undefined;
  /** Peak memory, with tmpfs files and page cache. */
  readonly peakMemoryBytes: number | undefined;
  /** Peak of processes and threads, without bubblewrap's own. */
  readonly peakProcesses: number | undefined;
  /** Processes that were killed for memory. */
  readonly memoryKills: number;
}

/** Options of {@link openCgroups}. */
export interface CgroupsOptions {
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly newId: NewId;
  /** Called for a group that cannot be removed. It must not throw. */
  onRemoveFailed(error: unknown): void;
  /** The host's by default. */
  readonly files?: CgroupFiles;
  /** Whether to time joining, in some 0.1 s: without it there is no remark. */
  readonly timesJoin?: boolean;
}

/** What {@link openCgroups} found. */
export interface CgroupsFound {
  /** Undefined when this worker may not make groups. The caller owns it. */
  readonly cgroups: Cgroups | undefined;
  /** What is missing and why, for the operator. It names directories of the host. */
  readonly reason: string | undefined;
  /** How the operator can give what is missing. */
  readonly remedy: string | undefined;
  /** What groups cost more than they could, and what to do about it, for the operator. */
  readonly remark: string | undefined;
}
