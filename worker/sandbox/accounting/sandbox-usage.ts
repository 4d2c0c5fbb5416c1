/**
 * What keeps the totals of one sandbox: its control group, where there is one, and a guard for the
 * rest.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Cgroups, SandboxCgroup } from "../cgroup/cgroup.ts";
import { type Amount, DiskWalk } from "./disk-usage.ts";
import type { Guard, Watch } from "./resource-monitor.ts";
import type { PrivateMemory } from "./tmpfs-usage.ts";
import type { WatchedSandbox } from "./usage-sampler.ts";
import { SandboxError, type Usage } from "../sandbox.ts";

/** What is known of a sandbox before it starts. */
export interface TotalsOptions {
  readonly limits: Limits;
  /** The work directory on the host, with everything in it that the tool gets. */
  readonly workDir: string;
  readonly privateMemory: PrivateMemory | undefined;
  /**
   * Whether the sandbox's first process is not the command but its parent, which counts nowhere.
   */
  readonly commandIsChild: boolean;
  /**
   * Whether no bubblewrap is in it, which control groups otherwise reckon with besides the first
   * process.
   */
  readonly isForked?: boolean;
}

/** What a sandbox used, and how often it was denied memory by the death of a process. */
export interface TotalUsage extends Omit<Usage, "wallMs"> {
  readonly memoryKills: number;
}

/** Disposed when the sandbox's last process is gone, or when it was not started. */
export class Totals implements Disposable {
  readonly #guard: Guard;
  readonly #options: TotalsOptions;
  readonly #disk: DiskWalk;
  readonly #group: SandboxCgroup | undefined;
  readonly #cgroups: Cgroups | undefined;
  #watch: Watch | undefined;

  private constructor(
    guard: Guard,
    cgroups: Cgroups | undefined,
    group: SandboxCgroup | undefined,
    options: TotalsOptions,
    disk: DiskWalk,
  ) {
    this.#guard = guard;
    this.#cgroups = cgroups;
    this.#group = group;
    this.#options = options;
    this.#disk = disk;
  }

  /**
   * Looks at what the tool gets, and makes a group where this host has groups. Throws SandboxError.
   */
  static async open(
    guard: Guard,
    cgroups: Cgroups | undefined,
    options: TotalsOptions,
  ): Promise<Totals> {
    let disk: DiskWalk;
    try {
      disk = new DiskWalk(options.workDir);
    } catch (error) {
      throw new SandboxError("cannot look at a work directory", { cause: error });
    }
    try {
      const { limits, isForked } = options;
      const processes = limits.processes - Number(isForked ?? false);
      const group = await cgroups?.create({ ...limits, processes });
      return new Totals(guard, cgroups, group, options, disk);
    } catch (error) {
      disk[Symbol.dispose]();
      throw error;
    }
  }

  get limits(): Limits {
    return this.#options.limits;
  }

  /** What was used so far. */
  get usage(): TotalUsage {
    const seen = this.#watch?.usage;
    const counted = this.#group?.read();
    return {
      cpuMs: counted?.cpuMs ?? seen?.cpuMs,
      peakMemoryBytes: counted?.peakMemoryBytes ?? seen?.peakMemoryBytes,
      peakProcesses: this.#withForked(counted?.peakProcesses) ?? seen?.peakProcesses,
      memoryKills: counted?.memoryKills ?? 0,
    };
  }

  #withForked(processes: number | undefined): number | undefined {
    return processes === undefined
      ? undefined
      : processes + Number(this.#options.isForked ?? false);
  }

  /**
   * Counts a process that has no children yet, and makes none meanwhile, with the sandbox, and all
   * that it will have. Rejects with SandboxError.
   */
  async enter(pid: number): Promise<void> {
    await this.#group?.add(pid);
  }

  /** From now on the sandbox is watched. */
  begin(firstPid: number, listener: Pick<WatchedSandbox, "onExceeded" | "onFailed">): void {
    const { limits, privateMemory, commandIsChild } = this.#options;
    const [group, controls] = [this.#group, this.#cgroups?.controls];
    this.#watch = this.#guard.watch({
      firstPid,
      limits,
      privateMemory,
      commandIsChild,
      disk: this.#disk,
      group: controls && group && { controls, read: () => group.read() },
      ...listener,
    });
  }

  /** The command only waits for its call: it is looked at less often until `beginCall`. */
  rest(): void {
    this.#watch?.rest();
  }

  /** Nobody looks any more. What was seen so far is known. */
  unwatch(): void {
    this.#watch?.[Symbol.dispose]();
  }

  /** The command is about to get a call, and what that brings lies in the work directory. */
  beginCall(staged: Amount): void {
    this.#watch?.beginCall(staged);
  }

  /** To be called when the command has ended and the first process may still be there. */
  lookLast(): void {
    if (this.#group === undefined || this.#cgroups?.controls.cpu !== true) this.#watch?.lookLast();
  }

  /** Kills everything that counts with the sandbox, where there is a group. */
  kill(): void {
    this.#group?.kill();
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
    this.#disk[Symbol.dispose]();
    if (this.#group !== undefined) this.#cgroups?.discard(this.#group);
  }
}
