/**
 * The group of one sandbox: a directory in each hierarchy.
 */
import { join } from "node:path";
import type { Clock } from "../../support/clock.ts";
import { signalQuietly } from "../proc/processes.ts";
import { SandboxError } from "../sandbox.ts";
import type { CgroupControl, CgroupUsage, SandboxCgroup } from "./cgroup.ts";
import type { CgroupDialect, CgroupLimits } from "./dialect.ts";
import type { OpenFile } from "../proc/files.ts";
import { type CgroupFiles, type MemoryPeak, isErrno } from "./files.ts";

/** Milliseconds until removal is given up: a killed process frees its memory first. */
const removeTimeoutMs = 10_000;
/** Milliseconds between two attempts, doubling from the first to the last. */
const removePauseMs = { first: 1, last: 50 };
/**
 * Bytes that a group that is used again may still be charged for, mostly those that the kernel
 * holds ready on each processor. They count in the next sandbox's peak.
 */
const maxLeftBytes = 1024 * 1024;

/** Codes of a kernel that begins no peak anew. */
const resetRefused = ["EINVAL", "EACCES", "EPERM", "EOPNOTSUPP"];

/** A group below which sandboxes' groups are made, and their controls in its hierarchy. */
export interface CgroupParent {
  readonly directory: string;
  readonly controls: readonly CgroupControl[];
}

/** What groups are made with. */
export interface CgroupMakings {
  readonly files: CgroupFiles;
  readonly dialect: CgroupDialect;
  readonly parents: readonly CgroupParent[];
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  /** Called for a group that cannot be removed. */
  onRemoveFailed(error: unknown): void;
}

/** A group below each of the parents, whose files carry one name. */
export class CgroupOfSandbox implements SandboxCgroup {
  readonly #makings: CgroupMakings;
  readonly #name: string;
  /** Undefined for a group that this worker did not make. */
  readonly limits: CgroupLimits | undefined;
  /** Of earlier sandboxes. */
  #earlierCpuMs = 0;
  /** Since the last renewal; undefined before, and where the kernel counts none. */
  #peak: MemoryPeak | undefined;
  /** Files that each call reads, by path: open for all sandboxes of the group. */
  readonly #counters = new Map<string, OpenFile>();
  /** A process may be in one hierarchy's group only. */
  #isSplit = false;

  /** A group that exists. */
  constructor(makings: CgroupMakings, name: string, limits?: CgroupLimits) {
    this.#makings = makings;
    this.#name = name;
    this.limits = limits;
  }

  /** Makes it, with its limits. Throws the system's error, and then nothing is left. */
  static make(makings: CgroupMakings, name: string, limits: CgroupLimits): CgroupOfSandbox {
    const { files, dialect, parents } = makings;
    using undo = new DisposableStack();
    const settings = dialect.settings(limits);
    for (const { directory, controls } of parents) {
      const group = join(directory, name);
      files.make(group);
      undo.defer(() => removeQuietly(files, group));
      for (const { control, file, value, isOptional = false } of settings)
        if (controls.includes(control))
          writeSetting(files, join(group, file), String(value), isOptional);
    }
    undo.move();
    const { memoryBytes, processes } = limits;
    return new CgroupOfSandbox(makings, name, { memoryBytes, processes });
  }

  /**
   * Ends the group's use by a sandbox that is gone. False where no other sandbox can have it:
   * docs/adr/0052-control-groups-are-used-again.md says why.
   */
  release(): boolean {
    this.#peak?.[Symbol.dispose]();
    this.#peak = undefined;
    return !this.#isSplit && this.#isEmpty() && this.#isAsNew();
  }

  /** Resets the counts of a released group. Only a `renewed` one may serve another sandbox. */
  renew(): "renewed" | "failed" | "refused" {
    const { files, dialect } = this.#makings;
    try {
      const peak = this.#pathOf("memory", dialect.memoryFiles.peak);
      this.#peak = peak === undefined ? undefined : files.openPeak(peak);
      this.#peak?.reset();
      this.#earlierCpuMs = dialect.usage(this.#read).cpuMs ?? 0;
      // Another process may have removed the group.
      return this.#isEmpty() ? "renewed" : "failed";
    } catch (error) {
      return isErrno(error, ...resetRefused) ? "refused" : "failed";
    }
  }

  /** False also for a group that cannot be read. */
  #isEmpty(): boolean {
    // Those that are not reaped yet count, and are in no list.
    const counts = this.#pathOf("processes", "pids.current");
    if (counts !== undefined) return this.#makings.files.read(counts)?.trim() === "0";
    const { files } = this.#makings;
    return this.#groups().every((group) => files.processesIn(group).length === 0);
  }

  /**
   * Peaks of processes and kills never begin anew. The processes that each sandbox has are 0. False
   * also where what every kernel tells cannot be read.
   */
  #isAsNew(): boolean {
    const { dialect } = this.#makings;
    const optional = [dialect.memoryFiles.peak, "pids.peak"];
    let isTold = true;
    const read = (control: CgroupControl, file: string): string | undefined => {
      const text = this.#read(control, file);
      const mustBeThere = this.#pathOf(control, file) !== undefined && !optional.includes(file);
      if (text === undefined && mustBeThere) isTold = false;
      return text;
    };
    const leftBytes = Number(read("memory", dialect.memoryFiles.inUse) ?? 0);
    const { peakProcesses = 0, memoryKills } = dialect.usage(read);
    return isTold && leftBytes <= maxLeftBytes && peakProcesses === 0 && memoryKills === 0;
  }

  async add(pid: number): Promise<void> {
    const moves = this.#groups().map((group) => this.#move(pid, group));
    const failed = (await Promise.allSettled(moves)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  async #move(pid: number, group: string): Promise<void> {
    try {
      await this.#makings.files.move(join(group, "cgroup.procs"), pid);
    } catch (error) {
      // It is gone, and its exit says why.
      if (isErrno(error, "ESRCH")) return;
      this.#isSplit = true;
      throw new SandboxError(`cannot move a process into ${group}`, { cause: error });
    }
  }

  processes(): readonly number[] {
    const [group] = this.#groups();
    return group === undefined ? [] : this.#makings.files.processesIn(group);
  }

  read(): CgroupUsage {
    const { dialect } = this.#makings;
    const peak = this.#peak;
    const { cpuMs, ...usage } = dialect.usage((control, file) =>
      peak !== undefined && file === dialect.memoryFiles.peak
        ? peak.read()
        : this.#read(control, file),
    );
    return { cpuMs: cpuMs === undefined ? undefined : cpuMs - this.#earlierCpuMs, ...usage };
  }

  readonly #read = (control: CgroupControl, file: string): string | undefined => {
    const path = this.#pathOf(control, file);
    return path && this.#counterOf(path)?.read();
  };

  /** Undefined where it cannot be read. */
  #counterOf(path: string): OpenFile | undefined {
    const known = this.#counters.get(path);
    if (known !== undefined) return known;
    const counter = this.#makings.files.openCounter(path);
    if (counter !== undefined) this.#counters.set(path, counter);
    return counter;
  }

  #pathOf(control: CgroupControl, file: string): string | undefined {
    const parent = this.#makings.parents.find(({ controls }) => controls.includes(control));
    return parent && `${parent.directory}/${this.#name}/${file}`;
  }

  kill(): void {
    for (const group of this.#groups()) kill(this.#makings.files, group);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#peak?.[Symbol.dispose]();
    this.#peak = undefined;
    for (const counter of this.#counters.values()) counter[Symbol.dispose]();
    this.#counters.clear();
    await Promise.all(
      this.#groups().map((group) =>
        remove(group, this.#makings).catch((error: unknown) => this.#makings.onRemoveFailed(error)),
      ),
    );
  }

  #groups(): readonly string[] {
    return this.#makings.parents.map(({ directory }) => join(directory, this.#name));
  }
}

/** The error that led here says more. */
function removeQuietly(files: CgroupFiles, group: string): void {
  try {
    files.remove(group);
  } catch {
    // The next worker finds it by its name.
  }
}

function writeSetting(files: CgroupFiles, path: string, value: string, isOptional: boolean): void {
  try {
    files.write(path, value);
  } catch (error) {
    if (!isOptional || !isErrno(error, "ENOENT")) throw error;
  }
}

/** Kernels have `cgroup.kill` from 5.14 on in version 2. */
function kill(files: CgroupFiles, group: string): void {
  try {
    files.write(join(group, "cgroup.kill"), "1");
  } catch {
    // 0 stands for a process of another pid namespace, and as a signal's target for this group.
    for (const pid of files.processesIn(group)) if (pid > 0) signalQuietly(pid, "SIGKILL");
  }
}

async function remove(group: string, { files, clock }: CgroupMakings): Promise<void> {
  const deadlineMs = clock.monotonicMs() + removeTimeoutMs;
  for (let pauseMs = removePauseMs.first; ; pauseMs = Math.min(pauseMs * 2, removePauseMs.last)) {
    try {
      files.remove(group);
      return;
    } catch (error) {
      if (isErrno(error, "ENOENT")) return;
      if (!isErrno(error, "EBUSY") || clock.monotonicMs() > deadlineMs)
        throw new SandboxError(`cannot remove ${group}`, { cause: error });
    }
    kill(files, group);
    await clock.sleep(pauseMs);
  }
}
