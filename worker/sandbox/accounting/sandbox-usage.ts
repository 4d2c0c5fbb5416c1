/**
 * Accounts for the resources of one sandbox: by its control group, where there is one, and by the
 * resource monitor for the rest.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Cgroups, SandboxCgroup } from "../cgroup/cgroup.ts";
import { SandboxError, type Usage } from "../sandbox.ts";
import { type Amount, DiskUsage } from "./disk-usage.ts";
import type { ResourceMonitor } from "./resource-monitor.ts";
import type { TmpfsPlace } from "./tmpfs-usage.ts";
import { type SampledSandbox, UsageSampler } from "./usage-sampler.ts";

/** What is known of a sandbox before it starts. */
export interface SandboxUsageOptions {
  readonly limits: Limits;
  /** The work directory on the host, with the staged files. */
  readonly workDir: string;
  readonly tmpfs: TmpfsPlace | undefined;
  /** The name of the file that has the sandbox's memory, where its kernel is a program. */
  readonly memoryFile?: string | undefined;
  /** Whether it has devices of the host. */
  readonly hasDevices: boolean;
  /** Whether the first process is the command's parent, which does not count. */
  readonly commandIsChild: boolean;
  /** Whether it has no bubblewrap process, for which control groups leave room. */
  readonly isForked?: boolean;
}

/** Usage, and processes that the kernel killed for memory. */
export interface TotalUsage extends Omit<Usage, "wallMs"> {
  readonly memoryKills: number;
  /** Whether the kernel has counted all along, and never more than one process of the tool's. */
  readonly hasCountedOne: boolean;
}

/** Control groups, as far as sandboxes are accounted for by them. */
export type SandboxCgroups = Pick<Cgroups, "controls" | "create" | "discard">;

/** Disposed when the sandbox's last process is gone, or when it was not started. */
export class SandboxUsage implements Disposable {
  readonly #monitor: ResourceMonitor;
  readonly #cgroups: SandboxCgroups | undefined;
  readonly #options: SandboxUsageOptions;
  readonly #disk: DiskUsage;
  #group: SandboxCgroup | undefined;
  #sampler: UsageSampler | undefined;

  private constructor(
    monitor: ResourceMonitor,
    cgroups: SandboxCgroups | undefined,
    options: SandboxUsageOptions,
  ) {
    this.#monitor = monitor;
    this.#cgroups = cgroups;
    this.#options = options;
    try {
      this.#disk = new DiskUsage(options.workDir);
    } catch (error) {
      throw new SandboxError("cannot read a work directory", { cause: error });
    }
  }

  /** Counts the staged files, and makes a control group where possible. Throws SandboxError. */
  static async open(
    monitor: ResourceMonitor,
    cgroups: SandboxCgroups | undefined,
    options: SandboxUsageOptions,
  ): Promise<SandboxUsage> {
    using stack = new DisposableStack();
    const usage = stack.use(new SandboxUsage(monitor, cgroups, options));
    const { limits, isForked = false } = options;
    usage.#group = await cgroups?.create({
      ...limits,
      processes: limits.processes - Number(isForked),
    });
    stack.move();
    return usage;
  }

  get limits(): Limits {
    return this.#options.limits;
  }

  /** Usage so far. */
  get usage(): TotalUsage {
    const sampled = this.#sampler?.usage;
    const counted = this.#group?.read();
    const forked = Number(this.#options.isForked ?? false);
    const peakProcesses = counted?.peakProcesses;
    return {
      cpuMs: counted?.cpuMs ?? sampled?.cpuMs,
      peakMemoryBytes: counted?.peakMemoryBytes ?? sampled?.peakMemoryBytes,
      peakProcesses: peakProcesses === undefined ? sampled?.peakProcesses : peakProcesses + forked,
      memoryKills: counted?.memoryKills ?? 0,
      hasCountedOne: peakProcesses !== undefined && peakProcesses + forked <= 1,
    };
  }

  /** Whether no other process is in the control group; undefined where none tells. */
  hasOnly(pids: readonly (number | undefined)[]): boolean | undefined {
    return this.#group?.processes?.().every((pid) => pids.includes(pid));
  }

  /** Moves a process without children into the control group. Rejects with SandboxError. */
  async enter(pid: number): Promise<void> {
    await this.#group?.add(pid);
  }

  /** Starts sampling. */
  begin(firstPid: number, listener: Pick<SampledSandbox, "onExceeded" | "onFailed">): void {
    const [group, controls] = [this.#group, this.#cgroups?.controls];
    this.#sampler = new UsageSampler({
      ...this.#options,
      ...listener,
      firstPid,
      disk: this.#disk,
      group: controls && group && { controls, read: () => group.read() },
      inTurn: (task) => this.#monitor.inTurn(task),
    });
    this.#watch(this.#sampler);
  }

  /** The command only waits for its call, until `beginCall`. */
  rest(): void {
    if (this.#sampler !== undefined) this.#monitor.watchIdle(this.#sampler);
  }

  /** Ends sampling. Usage stays as of the last sample. */
  unwatch(): void {
    if (this.#sampler === undefined) return;
    this.#monitor.remove(this.#sampler);
    this.#sampler[Symbol.dispose]();
  }

  /** Files of a call in the work directory do not count, also while they are written. */
  stage(staged: () => Amount): void {
    this.#sampler?.stage(staged);
  }

  /** The command gets a call, with these files. */
  beginCall(staged: Amount): void {
    if (this.#sampler === undefined) return;
    this.#sampler.stage(() => staged);
    this.#watch(this.#sampler);
  }

  #watch(sampler: UsageSampler): void {
    const isMemoryBound = this.#group !== undefined && this.#cgroups?.controls.memory === true;
    if (isMemoryBound) this.#monitor.watchLater(sampler);
    else this.#monitor.watch(sampler);
  }

  /** Call when the command has ended and the first process may still be there. */
  sampleLast(): void {
    if (this.#group === undefined || this.#cgroups?.controls.cpu !== true)
      this.#sampler?.sampleLast();
  }

  /** Kills all processes of the control group. */
  kill(): void {
    this.#group?.kill();
  }

  [Symbol.dispose](): void {
    this.unwatch();
    this.#disk[Symbol.dispose]();
    if (this.#group !== undefined) this.#cgroups?.discard(this.#group);
    // It may be another sandbox's soon.
    this.#group = undefined;
  }
}
