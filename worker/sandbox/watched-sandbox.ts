/**
 * One sandbox under guard: what it uses in all, look by look, and the first of its limits that is not enough.
 */
import type { LimitName, LimitReached, Limits } from "../protocol/resource-limits.ts";
import type { CgroupControl, CgroupUsage } from "./cgroup.ts";
import { CpuTotal } from "./cpu-total.ts";
import type { DiskWalk } from "./disk-use.ts";
import { exactBytes } from "./exact-memory.ts";
import { HeldFilesSearch } from "./held-files.ts";
import { type PrivateMemory, type PrivateMemoryUse, PrivateMemoryView } from "./private-memory.ts";
import { ProcessTree, type SeenProcess } from "./process-tree.ts";
import type { Usage } from "./sandbox.ts";

/** Least pause between two exact looks at one sandbox's memory, in lengths of such a look. */
const pausePerMeasure = 1;

/** What a guard has to know of a sandbox. */
export interface WatchedSandbox {
  /** What runs inside descends from it; as this host numbers it. */
  readonly firstPid: number;
  /** Whether that process is not the command but its parent, which counts nowhere. */
  readonly commandIsChild: boolean;
  readonly limits: Limits;
  /** Its work directory, as it was before anything ran. It is not disposed while the sandbox is watched. */
  readonly disk: DiskWalk;
  /** Memory file systems of its own, if it has some. */
  readonly privateMemory: PrivateMemory | undefined;
  /** Its control group, if it has one: what that bounds or counts is left to it. */
  readonly group: WatchedGroup | undefined;
  /** Told once, of the first limit that is not enough. It must not throw. */
  onExceeded(limit: LimitReached): void;
}

/** What a guard asks of a control group. */
export interface WatchedGroup {
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  read(): CgroupUsage;
}

/** Runs a task when those before it have ended. */
export type InTurn = (task: () => Promise<void>) => Promise<void>;

/** The owner disposes it when the sandbox's first process is gone. */
export class Watched implements Disposable {
  readonly #sandbox: WatchedSandbox;
  readonly #inTurn: InTurn;
  readonly #tree: ProcessTree;
  readonly #cpu = new CpuTotal();
  readonly #heldFiles: HeldFilesSearch;
  readonly #private: PrivateMemoryView | undefined;
  readonly #keepsMemory: boolean;
  #hasMeasured = false;
  #peakMemoryBytes: number | undefined;
  #peakProcesses: number | undefined;
  /** What was counted exactly last, and by which processes and sum the first look after that went. */
  #exact:
    { readonly bytes: number; processes: string | undefined; most: number | undefined } | undefined;
  #isMeasuring = false;
  #measureAgainAtMs = 0;
  #isOver = false;

  /** @param inTurn by which sandboxes take turns with what would keep too many threads busy at once */
  constructor(sandbox: WatchedSandbox, inTurn: InTurn) {
    const { firstPid, disk, privateMemory, group } = sandbox;
    this.#sandbox = sandbox;
    this.#inTurn = inTurn;
    this.#tree = new ProcessTree(firstPid);
    this.#heldFiles = new HeldFilesSearch(disk.device);
    this.#private = privateMemory && new PrivateMemoryView(firstPid, privateMemory);
    this.#keepsMemory = group?.controls.memory !== true;
  }

  /** Whether somebody was told of a limit, or it was disposed: then there is nothing to look for. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What was used as far as was seen. */
  get usage(): Omit<Usage, "wallMs"> {
    return {
      cpuMs: this.#hasMeasured ? this.#cpu.totalMs : undefined,
      peakMemoryBytes: this.#peakMemoryBytes,
      peakProcesses: this.#peakProcesses,
    };
  }

  /** Looks at everything; at files, which may be many, until `performance.now()` is `untilMs`. */
  look(untilMs: number): void {
    if (this.#isOver) return;
    const processes = this.#lookAtProcesses();
    if (processes.length <= Number(this.#sandbox.commandIsChild)) return;
    this.#hasMeasured = true;
    const memory = this.#private?.read();
    const counted = this.#sandbox.group?.read();
    this.#tell(
      this.#processesReached(processes) ??
        this.#beyond("cpuSeconds", (counted?.cpuMs ?? this.#cpu.totalMs) / 1000) ??
        (counted && this.#memoryRefused(counted)) ??
        (this.#keepsMemory ? this.#memoryReached(processes, memory) : undefined) ??
        this.#filesReached(processes, memory, untilMs),
    );
  }

  /** Looks at processor time when the command has ended: the first process may still know what all have used. */
  lookLast(): void {
    if (this.#lookAtProcesses().length > 0) this.#hasMeasured = true;
  }

  #lookAtProcesses(): readonly SeenProcess[] {
    const processes = this.#tree.look(this.#keepsMemory);
    this.#cpu.add(processes);
    return processes;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
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

  #memoryReached(
    processes: readonly SeenProcess[],
    memory: PrivateMemoryUse | undefined,
  ): LimitReached | undefined {
    const inFiles = memory?.bytes ?? 0;
    const each = processes.map(({ privateBytes }) => privateBytes);
    const shared = processes.reduce((sum, { sharedBytes }) => sum + sharedBytes, 0);
    const most = inFiles + shared + each.reduce((sum, bytes) => sum + bytes, 0);
    const bound = this.#sandbox.limits.memoryBytes;
    // What one process has as its own is in nobody else's sum.
    const least = Math.max(inFiles + Math.max(...each), this.#leastSinceExact(processes, most));
    if (most <= bound || least > bound) return this.#holds(most <= bound ? most : least);
    void this.#measure(processes, inFiles, most);
    return undefined;
  }

  /** Where memory is used up, the kernel may kill one process only, and the others go on without it. */
  #memoryRefused({ memoryKills, peakMemoryBytes }: CgroupUsage): LimitReached | undefined {
    if (memoryKills === 0) return undefined;
    const bound = this.#sandbox.limits.memoryBytes;
    return { limit: "memoryBytes", bound, peak: peakMemoryBytes };
  }

  /** What was held when it was counted exactly, and what the same processes have got since. */
  #leastSinceExact(processes: readonly SeenProcess[], most: number): number {
    const exact = this.#exact;
    const same = namesOf(processes);
    if (exact === undefined || (exact.processes !== undefined && exact.processes !== same))
      return 0;
    exact.processes = same;
    exact.most ??= most;
    return exact.bytes + most - exact.most;
  }

  #holds(bytes: number): LimitReached | undefined {
    this.#peakMemoryBytes = Math.max(this.#peakMemoryBytes ?? 0, bytes);
    return this.#beyond("memoryBytes", bytes);
  }

  /** Counts each page once, which takes long: other looks go on meanwhile. */
  async #measure(processes: readonly SeenProcess[], inFiles: number, most: number): Promise<void> {
    if (this.#isMeasuring || performance.now() < this.#measureAgainAtMs) return;
    this.#isMeasuring = true;
    await this.#inTurn(async () => {
      const beganMs = performance.now();
      const exact = await exactBytes(processes, this.#private?.devices ?? []);
      const endedMs = performance.now();
      this.#measureAgainAtMs = endedMs + pausePerMeasure * (endedMs - beganMs);
      // Where the kernel does not tell, the sum that counts some pages more than once has to do.
      const held = exact === undefined ? most : exact + inFiles;
      this.#exact = { bytes: held, processes: undefined, most: undefined };
      this.#tell(this.#holds(held));
    });
    this.#isMeasuring = false;
  }

  #filesReached(
    processes: readonly SeenProcess[],
    memory: PrivateMemoryUse | undefined,
    untilMs: number,
  ): LimitReached | undefined {
    const { disk, limits } = this.#sandbox;
    const { staged } = disk;
    const halfMs = (performance.now() + untilMs) / 2;
    this.#heldFiles.goOn(
      processes.map(({ pid }) => pid),
      halfMs,
    );
    disk.goOn(untilMs);
    let [bytes, files] = [0, 0];
    for (const named of disk.uses) {
      if (named.isTooDeep) return { limit: "files", bound: limits.files, peak: undefined };
      for (const held of this.#heldFiles.uses) {
        const unnamed = [...held].filter(([inode]) => !named.inodes.has(inode));
        const unnamedBytes = unnamed.reduce((sum, [, heldBytes]) => sum + heldBytes, 0);
        bytes = Math.max(bytes, named.bytes + unnamedBytes - staged.bytes);
        files = Math.max(files, named.files + unnamed.length - staged.files);
      }
    }
    return this.#beyond("diskBytes", bytes) ?? this.#beyond("files", files + (memory?.files ?? 0));
  }
}

function namesOf(processes: readonly SeenProcess[]): string {
  return processes.map(({ pid, startTicks }) => `${pid}-${startTicks}`).join();
}
