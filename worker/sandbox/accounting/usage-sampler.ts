/**
 * One sandbox under guard: what it uses in all, look by look, and the first of its limits that is
 * not enough.
 */
import type { LimitName, LimitReached, Limits } from "../../protocol/resource-limits.ts";
import type { CgroupControl, CgroupUsage } from "../cgroup/cgroup.ts";
import { CpuTotal } from "./cpu-time.ts";
import type { Amount, DiskWalk } from "./disk-usage.ts";
import { HeldFilesSearch } from "./open-files.ts";
import { MappingsSearch } from "./mappings.ts";
import { type InTurn, MemoryTotal } from "./memory-usage.ts";
import { OwnMounts } from "./own-mounts.ts";
import { type PrivateMemory, type PrivateMemoryUse, PrivateMemoryView } from "./tmpfs-usage.ts";
import { ProcessTree, type SeenProcess } from "./process-tree.ts";
import type { Usage } from "../sandbox.ts";

/** What a guard has to know of a sandbox. */
export interface WatchedSandbox {
  /** What runs inside descends from it; as this host numbers it. */
  readonly firstPid: number;
  /** Whether that process is not the command but its parent, which counts nowhere. */
  readonly commandIsChild: boolean;
  readonly limits: Limits;
  /**
   * Its work directory, as it was before anything ran. It is not disposed while the sandbox is
   * watched.
   */
  readonly disk: DiskWalk;
  /** Memory file systems of its own, if it has some. */
  readonly privateMemory: PrivateMemory | undefined;
  /** Its control group, if it has one: what that bounds or counts is left to it. */
  readonly group: WatchedGroup | undefined;
  /** Told once, of the first limit that is not enough. It must not throw. */
  onExceeded(limit: LimitReached): void;
  /** Told once, instead, when nobody can say what it uses any more. It must not throw. */
  onFailed(error: unknown): void;
}

/** What a guard asks of a control group. */
export interface WatchedGroup {
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  read(): CgroupUsage;
}

/** How long one look may take for files, see {@link Watched.look}. */
interface FilesShare {
  readonly filesMs: number;
  readonly walkMs: number;
  readonly mayBegin: boolean;
}

/** The owner disposes it when the sandbox's first process is gone. */
export class Watched implements Disposable {
  readonly #sandbox: WatchedSandbox;
  readonly #tree: ProcessTree;
  readonly #cpu = new CpuTotal();
  readonly #mappings: MappingsSearch;
  readonly #heldFiles: HeldFilesSearch;
  readonly #private: PrivateMemoryView | undefined;
  readonly #mounts: OwnMounts;
  /** Undefined where the control group counts it. */
  readonly #memory: MemoryTotal | undefined;
  /** What is in the work directory and was not made inside. */
  #staged: Amount;
  /** What it may still add to its work directory. */
  #left: Amount;
  #hasMeasured = false;
  #peakProcesses: number | undefined;
  #isOver = false;

  /**
   * @param inTurn by which sandboxes take turns with what would keep too many threads busy at once
   */
  constructor(sandbox: WatchedSandbox, inTurn: InTurn) {
    const { firstPid, disk, privateMemory, group } = sandbox;
    this.#sandbox = sandbox;
    this.#staged = { bytes: disk.staged.bytes, files: disk.staged.files };
    this.#left = { bytes: sandbox.limits.diskBytes, files: sandbox.limits.files };
    this.#tree = new ProcessTree(firstPid);
    this.#mappings = new MappingsSearch(disk.device);
    this.#heldFiles = new HeldFilesSearch(disk.device);
    this.#private = privateMemory && new PrivateMemoryView(firstPid, privateMemory);
    this.#mounts = new OwnMounts(firstPid, () => [disk.device, ...this.#ownMemory]);
    if (group?.controls.memory === true) return;
    this.#memory = new MemoryTotal({
      boundBytes: sandbox.limits.memoryBytes,
      tree: this.#tree,
      files: this.#private,
      foreignBytes: () => this.#foreignBytes,
      mappings: this.#mappings,
      inTurn,
      onExceeded: (limit) => this.#tell(limit),
      onFailed: (error) => this.#fail(error),
    });
  }

  /**
   * Whether somebody was told of a limit, or it was disposed: then there is nothing to look for.
   */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What was used as far as was seen. */
  get usage(): Omit<Usage, "wallMs"> {
    return {
      cpuMs: this.#hasMeasured ? this.#cpu.totalMs : undefined,
      peakMemoryBytes: this.#memory?.peakBytes,
      peakProcesses: this.#peakProcesses,
    };
  }

  /**
   * Whether its work directory may have grown beyond its limits while the walk through it was on
   * its way: by no more than the file system holds more, and that is too much.
   */
  get isUrgent(): boolean {
    const { bytes, files } = this.#sandbox.disk.heldMore;
    return bytes > this.#left.bytes || files > this.#left.files;
  }

  /** Whether a walk through its work directory has started and goes on with the next look. */
  get isWalking(): boolean {
    return this.#sandbox.disk.isUnderWay;
  }

  /**
   * Counts what has been put into the work directory from outside, besides what was there at first.
   */
  stage({ bytes, files }: Amount): void {
    this.#staged = { bytes: this.#staged.bytes + bytes, files: this.#staged.files + files };
  }

  /**
   * Looks at everything; at files, which may be many, for some milliseconds.
   *
   * @param walkMs that go into the walk through the work directory besides
   * @param mayBegin whether a walk through the work directory may begin, which keeps descriptors
   *   until it ends
   */
  look(filesMs: number, walkMs: number, mayBegin: boolean): void {
    if (this.#isOver) return;
    try {
      this.#lookAtAll({ filesMs, walkMs, mayBegin });
    } catch (error) {
      this.#fail(error);
    }
  }

  #lookAtAll(share: FilesShare): void {
    const processes = this.#lookAtProcesses();
    if (processes.length <= Number(this.#sandbox.commandIsChild)) return;
    this.#hasMeasured = true;
    const memory = this.#private?.read();
    const counted = this.#sandbox.group?.read();
    this.#tell(
      this.#processesReached(processes) ??
        this.#beyond("cpuSeconds", (counted?.cpuMs ?? this.#cpu.totalMs) / 1000) ??
        this.#memoryRefused(counted) ??
        this.#memory?.look(processes, memory?.bytes ?? 0) ??
        this.#filesReached(processes, memory, share),
    );
  }

  /**
   * Looks at processor time when the command has ended: the first process may still know what all
   * have used.
   */
  lookLast(): void {
    try {
      if (this.#lookAtProcesses().length > 0) this.#hasMeasured = true;
    } catch {
      // What was seen before is all that is known.
    }
  }

  #lookAtProcesses(): readonly SeenProcess[] {
    const processes = this.#tree.look(this.#memory !== undefined);
    this.#cpu.add(processes);
    return processes;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#mappings[Symbol.dispose]();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sandbox.onFailed(error);
  }

  #tell(limit: LimitReached | undefined): void {
    if (limit === undefined || this.#isOver) return;
    this.#isOver = true;
    this.#sandbox.onExceeded(limit);
  }

  #beyond(limit: LimitName, value: number): LimitReached | undefined {
    const bound = this.#sandbox.limits[limit];
    return value > bound ? { limit, bound, peak: value } : undefined;
  }

  #processesReached(processes: readonly SeenProcess[]): LimitReached | undefined {
    const all = processes.reduce((sum, { threads }) => sum + threads, 0);
    const count = all - Number(this.#sandbox.commandIsChild);
    this.#peakProcesses = Math.max(this.#peakProcesses ?? 0, count);
    return this.#beyond("processes", count);
  }

  /**
   * Where memory is used up, the kernel may kill one process only, and the others go on without it.
   * What is others' is in no group's account, and of what is mapped of it nobody can say how much
   * that is.
   */
  #memoryRefused(counted: CgroupUsage | undefined): LimitReached | undefined {
    const bound = this.#sandbox.limits.memoryBytes;
    const { memoryKills = 0, peakMemoryBytes } = counted ?? {};
    const foreign = this.#foreignBytes;
    const peak = foreign > 0 && peakMemoryBytes !== undefined ? peakMemoryBytes + foreign : 0;
    if (peak > bound) return { limit: "memoryBytes", bound, peak };
    if (memoryKills === 0 && !this.#mappings.hasForeign) return undefined;
    return { limit: "memoryBytes", bound, peak: peakMemoryBytes };
  }

  /** Bytes in memory file systems of other sandboxes that are there because of this one. */
  get #foreignBytes(): number {
    const sums = this.#heldFiles.uses.map(({ foreignMemory }) =>
      [...foreignMemory.values()].reduce((sum, bytes) => sum + bytes, 0),
    );
    return Math.max(...sums);
  }

  /** Devices of its memory file systems; none before it has been set up. */
  get #ownMemory(): readonly number[] {
    return this.#private?.devices ?? [];
  }

  #filesReached(
    processes: readonly SeenProcess[],
    memory: PrivateMemoryUse | undefined,
    { filesMs, walkMs, mayBegin }: FilesShare,
  ): LimitReached | undefined {
    const { disk, limits } = this.#sandbox;
    const staged = this.#staged;
    // Counted from here: looking at many processes takes long, and is none of the files' time.
    const untilMs = performance.now() + filesMs;
    const shareMs = filesMs / 3;
    const mounts = this.#ownMemory.length > 0 ? this.#mounts : undefined;
    const mapped = this.#sandbox.privateMemory?.hasDevices === true ? undefined : mounts;
    this.#mappings.goOn(processes, untilMs - 2 * shareMs, mapped);
    this.#heldFiles.goOn(processes, this.#mappings.files, untilMs - shareMs, mounts);
    if (mayBegin || disk.isUnderWay) disk.goOn(untilMs + walkMs);
    let [bytes, files] = [0, 0];
    for (const named of disk.uses) {
      for (const held of this.#heldFiles.uses) {
        if (named.isUncountable || held.isUncountable)
          return { limit: "files", bound: limits.files, peak: undefined };
        const unnamed = [...held.files].filter(([inode]) => !named.inodes.has(inode));
        const unnamedBytes = unnamed.reduce((sum, [, heldBytes]) => sum + heldBytes, 0);
        bytes = Math.max(bytes, named.bytes + unnamedBytes - staged.bytes);
        files = Math.max(files, named.files + unnamed.length - staged.files);
      }
    }
    files += memory?.files ?? 0;
    this.#left = { bytes: limits.diskBytes - bytes, files: limits.files - files };
    return this.#beyond("diskBytes", bytes) ?? this.#beyond("files", files);
  }
}
