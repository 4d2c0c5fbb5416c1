/**
 * Usage of one sandbox, sample by sample, and the first limit that it exceeds.
 */
import type { LimitName, LimitReached, Limits } from "../../protocol/resource-limits.ts";
import type { CgroupControl, CgroupUsage } from "../cgroup/cgroup.ts";
import type { Usage } from "../sandbox.ts";
import { CpuTime } from "./cpu-time.ts";
import type { Amount, DiskUsage } from "./disk-usage.ts";
import { MemoryFile } from "./memory-file.ts";
import { type InTurn, MemoryUsage, type Unshown } from "./memory-usage.ts";
import { type OpenFiles, OpenFilesSearch } from "./open-files.ts";
import { OwnMounts } from "./own-mounts.ts";
import { ProcessTree, type ProcessSample } from "./process-tree.ts";
import type { Sampled } from "./resource-monitor.ts";
import { type TmpfsAmount, type TmpfsPlace, TmpfsUsage } from "./tmpfs-usage.ts";

/** A sandbox, as a sampler has to know it. */
export interface SampledSandbox {
  /** The ancestor of all its processes, as this host numbers it. */
  readonly firstPid: number;
  /** Whether that process is the command's parent, which does not count. */
  readonly commandIsChild: boolean;
  readonly limits: Limits;
  /** Its work directory with the staged files. The caller owns it. */
  readonly disk: DiskUsage;
  readonly tmpfs: TmpfsPlace | undefined;
  /** See `SandboxUsageOptions.memoryFile`. */
  readonly memoryFile?: string | undefined;
  /** Devices of the host, whose drivers map memory of unknown file systems. */
  readonly hasDevices: boolean;
  /** Its control group, which bounds or counts instead. */
  readonly group: SampledGroup | undefined;
  /** Sandboxes count pages of memory one after the other. */
  readonly inTurn: InTurn;
  /** Called once, with the first exceeded limit. It must not throw. */
  onExceeded(limit: LimitReached): void;
  /** Called once, instead, when its usage cannot be sampled. It must not throw. */
  onFailed(error: unknown): void;
}

/** A control group, as a sampler has to know it. */
export interface SampledGroup {
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  read(): CgroupUsage;
}

/** The owner disposes it when the sandbox's first process is gone. */
export class UsageSampler implements Sampled, Disposable {
  readonly #sandbox: SampledSandbox;
  readonly #tree: ProcessTree;
  readonly #cpu = new CpuTime();
  readonly #openFiles: OpenFilesSearch;
  readonly #tmpfs: TmpfsUsage | undefined;
  readonly #memoryFile: MemoryFile | undefined;
  readonly #mounts: OwnMounts;
  /** Undefined where the control group bounds it. */
  readonly #memory: MemoryUsage | undefined;
  #stagedLater: () => Amount = () => ({ bytes: 0, files: 0 });
  /** What the tool may still add to its work directory. */
  #left: Amount;
  #hasSampled = false;
  #peakProcesses: number | undefined;
  #isOver = false;

  constructor(sandbox: SampledSandbox) {
    const { firstPid, disk, tmpfs, memoryFile, group, limits, inTurn } = sandbox;
    this.#sandbox = sandbox;
    this.#left = { bytes: limits.diskBytes, files: limits.files };
    this.#tree = new ProcessTree(firstPid);
    this.#openFiles = new OpenFilesSearch(disk.device);
    this.#tmpfs = tmpfs && new TmpfsUsage(firstPid, tmpfs);
    this.#memoryFile = memoryFile === undefined ? undefined : new MemoryFile(firstPid, memoryFile);
    this.#mounts = new OwnMounts(firstPid, () => [disk.device, ...(this.#tmpfs?.devices ?? [])]);
    if (group?.controls.memory === true) return;
    this.#memory = new MemoryUsage({
      boundBytes: limits.memoryBytes,
      tree: this.#tree,
      unshown: () => this.#unshown(this.#readTmpfs()),
      inTurn,
      onExceeded: (limit) => this.#report(limit),
      onFailed: (error) => this.#fail(error),
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isUrgent(): boolean {
    const { bytes, files } = this.#sandbox.disk.fileSystemGrowth;
    return bytes > this.#left.bytes || files > this.#left.files;
  }

  /** As far as sampled. */
  get usage(): Omit<Usage, "wallMs"> {
    return {
      cpuMs: this.#hasSampled ? this.#cpu.totalMs : undefined,
      peakMemoryBytes: this.#memory?.peakBytes,
      peakProcesses: this.#peakProcesses,
    };
  }

  /** Files of a call that are staged later do not count either, from the first byte on. */
  stage(staged: () => Amount): void {
    this.#stagedLater = staged;
  }

  sample(filesMs: number, walkMs: number): void {
    if (this.#isOver) return;
    try {
      const processes = this.#sampleProcesses();
      if (processes.length <= Number(this.#sandbox.commandIsChild)) return;
      this.#hasSampled = true;
      const tmpfs = this.#readTmpfs();
      const counted = this.#sandbox.group?.read();
      this.#report(
        this.#processesExceeded(processes) ??
          this.#exceeded("cpuSeconds", (counted?.cpuMs ?? this.#cpu.totalMs) / 1000) ??
          this.#memoryRefused(counted) ??
          this.#memory?.check(processes, this.#unshown(tmpfs)) ??
          this.#filesExceeded(processes, tmpfs, filesMs, walkMs),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The last CPU time, when the command has ended and the first process may still be there. */
  sampleLast(): void {
    try {
      if (this.#sampleProcesses().length > 0) this.#hasSampled = true;
    } catch {
      // The last sample stands.
    }
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#openFiles[Symbol.dispose]();
  }

  #readTmpfs(): TmpfsAmount | undefined {
    return this.#tmpfs?.read() ?? this.#memoryFile?.read();
  }

  #sampleProcesses(): readonly ProcessSample[] {
    const processes = this.#tree.sample(this.#memory !== undefined);
    this.#cpu.add(processes);
    return processes;
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sandbox.onFailed(error);
  }

  #report(limit: LimitReached | undefined): void {
    if (limit === undefined || this.#isOver) return;
    this.#isOver = true;
    this.#sandbox.onExceeded(limit);
  }

  #exceeded(limit: LimitName, value: number): LimitReached | undefined {
    const bound = this.#sandbox.limits[limit];
    return value > bound ? { limit, bound, peak: value } : undefined;
  }

  #processesExceeded(processes: readonly ProcessSample[]): LimitReached | undefined {
    const threads = processes.reduce((sum, process) => sum + process.threads, 0);
    const count = threads - Number(this.#sandbox.commandIsChild);
    this.#peakProcesses = Math.max(this.#peakProcesses ?? 0, count);
    return this.#exceeded("processes", count);
  }

  /**
   * The kernel may have killed one process only. Foreign memory is in no group's account, and of
   * mapped foreign memory the size is unknown.
   */
  #memoryRefused(counted: CgroupUsage | undefined): LimitReached | undefined {
    const bound = this.#sandbox.limits.memoryBytes;
    const { memoryKills = 0, peakMemoryBytes } = counted ?? {};
    const foreignBytes = this.#most((use) => use.foreignBytes);
    const peak = (peakMemoryBytes ?? 0) + foreignBytes;
    if (peakMemoryBytes !== undefined && foreignBytes > 0 && peak > bound)
      return { limit: "memoryBytes", bound, peak };
    const isForeign = this.#openFiles.uses.some(({ mapped }) => mapped.isForeign);
    if (memoryKills === 0 && !isForeign) return undefined;
    return { limit: "memoryBytes", bound, peak: peakMemoryBytes };
  }

  #unshown(tmpfs: TmpfsAmount | undefined): Unshown {
    const [whole, found] = this.#openFiles.uses;
    const isLarger = found.mapped.sharedBytes > whole.mapped.sharedBytes;
    return {
      tmpfsBytes: tmpfs?.bytes ?? 0,
      otherBytes: this.#most(({ mapped, foreignBytes }) => mapped.kernelBytes + foreignBytes),
      shared: isLarger ? found.mapped : whole.mapped,
    };
  }

  /** The larger of the last complete search for open files, and this one so far. */
  #most(bytesOf: (use: OpenFiles) => number): number {
    return Math.max(...this.#openFiles.uses.map(bytesOf));
  }

  #filesExceeded(
    processes: readonly ProcessSample[],
    tmpfs: TmpfsAmount | undefined,
    filesMs: number,
    walkMs: number,
  ): LimitReached | undefined {
    const { disk, limits, hasDevices } = this.#sandbox;
    // From here: sampling many processes is not the files' time.
    const untilMs = performance.now() + filesMs;
    const mounts = this.#tmpfs?.devices.length ? this.#mounts : undefined;
    const mappedMounts = hasDevices ? undefined : mounts;
    this.#openFiles.goOn(processes, untilMs - filesMs / 2, mounts, mappedMounts);
    disk.goOn(untilMs + walkMs);
    // After the walk, which has then found no more of a file that is being staged.
    const later = this.#stagedLater();
    const staged = {
      bytes: disk.staged.bytes + later.bytes,
      files: disk.staged.files + later.files,
    };
    let [bytes, files] = [0, 0];
    for (const named of disk.uses) {
      for (const open of this.#openFiles.uses) {
        if (named.isUncountable || open.isUncountable)
          return { limit: "files", bound: limits.files, peak: undefined };
        const deleted = [...open.deletedFiles].filter(([inode]) => !named.inodes.has(inode));
        const deletedBytes = deleted.reduce((sum, [, size]) => sum + size, 0);
        bytes = Math.max(bytes, named.bytes + deletedBytes - staged.bytes);
        files = Math.max(files, named.files + deleted.length - staged.files);
      }
    }
    files += tmpfs?.files ?? 0;
    this.#left = { bytes: limits.diskBytes - bytes, files: limits.files - files };
    return this.#exceeded("diskBytes", bytes) ?? this.#exceeded("files", files);
  }
}
