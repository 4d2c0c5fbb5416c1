/**
 * The contract of control groups: the kernel keeps a sandbox's totals where this worker may make
 * groups of its own.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import type { CgroupFiles } from "./files.ts";

/** What a control group can keep or count of a sandbox. */
export type CgroupControl = "memory" | "processes" | "cpu";

/**
 * What control groups can do for sandboxes on this host. Its owner disposes it after the last
 * sandbox is gone; then no group is left, and the worker is again where it was.
 */
export interface Cgroups extends AsyncDisposable {
  /** One line for the operator: the version, and what is kept. */
  readonly description: string;
  readonly version: 1 | 2;
  /** `memory` and `processes` are bounded, `cpu` time is counted. */
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  /** Milliseconds that {@link SandboxCgroup.add} takes when it is rare, as it was tried. */
  readonly joinMs: number;
  /**
   * Makes a group for one sandbox, with its limits set. The caller owns it. Throws SandboxError.
   */
  create(limits: Limits, signal?: AbortSignal): Promise<SandboxCgroup>;
  /**
   * Disposes a group in the background: the kernel takes longer for it than an answer should wait.
   */
  discard(group: SandboxCgroup): void;
}

/**
 * The group of one sandbox. To be disposed when the sandbox's last process is gone; what is left in
 * it then is killed, and a group that cannot be removed is told of elsewhere, so that disposing
 * never rejects.
 */
export interface SandboxCgroup extends AsyncDisposable {
  /**
   * Moves a process that has no children yet, and makes none meanwhile, into the group. Rejects
   * with SandboxError when the kernel refuses; the process may then be in a part of it, and is to
   * be killed. One that is gone already is nothing to move.
   */
  add(pid: number): Promise<void>;
  /** What was used so far. Synchronous, and to be called before the group is disposed. */
  read(): CgroupUsage;
  /**
   * Kills every process in the group. One that is being born meanwhile may escape, until the group
   * is disposed.
   */
  kill(): void;
}

/** What a group used so far. A member is undefined where the kernel does not tell. */
export interface CgroupUsage {
  /** Processor time of all processes, those that are gone included. */
  readonly cpuMs: number | undefined;
  /**
   * The most that was charged at once: also files in private memory, and cached files, which the
   * kernel gives up in need.
   */
  readonly peakMemoryBytes: number | undefined;
  /** The most processes and threads at once, without bubblewrap's own. */
  readonly peakProcesses: number | undefined;
  /** Processes that were killed because the memory was used up. */
  readonly memoryKills: number;
}

/** Options of {@link openCgroups}. */
export interface CgroupsOptions {
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly newId: NewId;
  /**
   * Told of a group that could not be removed; nothing else fails because of it. It must not throw.
   */
  onRemoveFailed(error: unknown): void;
  /** The host's, unless told otherwise. */
  readonly files?: CgroupFiles;
  /**
   * Whether to find out, in some 0.2 s, what joining a group costs each call: without it there is
   * no remark.
   */
  readonly timesJoin?: boolean;
}

/** What {@link openCgroups} found. */
export interface CgroupsFound {
  /** Undefined when this worker may do nothing with control groups. The caller owns it. */
  readonly cgroups: Cgroups | undefined;
  /**
   * What is missing and why, for the operator; undefined when everything is there. It names
   * directories of the host.
   */
  readonly reason: string | undefined;
  /** How the operator can give what is missing. */
  readonly remedy: string | undefined;
  /**
   * For the operator: what groups cost more than they could, and what to do about it; undefined
   * when it is nothing.
   */
  readonly remark: string | undefined;
}
