/**
 * What a sandbox holds that no walk through its work directory finds: open deleted files, unnamed
 * mappings, and objects of other sandboxes.
 */
import { type Stats, readdirSync, statSync, statfsSync } from "node:fs";
import { throwIfExhausted } from "../proc/files.ts";
import { readStat } from "../proc/stat.ts";
import { blockBytes } from "./disk-usage.ts";
import { Mapped } from "./mappings.ts";
import type { OwnMounts } from "./own-mounts.ts";
import type { ProcessSample } from "./process-tree.ts";

/** One search in so many reads lists of mappings, which are long. */
export const searchesPerMappings = 5;

/** What statfs(2) says of tmpfs. */
const tmpfsMagic = 0x0102_1994;

/** Processes hold files besides by descriptors: proc_pid_cwd(5) and proc_pid_exe(5). */
const links = ["cwd", "exe"];

type Place = Pick<ProcessSample, "place">;

/** What one search found, or has found so far. */
export class OpenFiles {
  readonly mapped: Mapped;
  /** Bytes of open deleted files on the work directory's device, by inode. */
  readonly deleted = new Map<number, number>();
  /** Bytes on tmpfs of other sandboxes, by device: one open file keeps all of it. */
  readonly foreignTmpfs = new Map<number, number>();
  /** Whether it holds what the worker cannot inspect: another call's directory, or in hiding. */
  isUncountable = false;

  constructor(mapped: Mapped) {
    this.mapped = mapped;
  }

  /** Bytes of deleted files, open or mapped, by inode. */
  get deletedFiles(): ReadonlyMap<number, number> {
    return new Map([...this.mapped.files, ...this.deleted]);
  }

  get foreignBytes(): number {
    return [...this.foreignTmpfs.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

/**
 * Searches descriptors and mappings of all processes, piece by piece and again and again. Finds
 * nothing that is in transit over a socket. The owner disposes it.
 */
export class OpenFilesSearch implements Disposable {
  readonly #device: number;
  #whole = new OpenFiles(new Mapped());
  #found = this.#whole;
  #searches = 0;
  #search: Generator<undefined, void> | undefined;

  /** @param device of the work directory, as stat(2) numbers it */
  constructor(device: number) {
    this.#device = device;
  }

  /** The last complete search, and this one so far. */
  get uses(): readonly [OpenFiles, OpenFiles] {
    return [this.#whole, this.#found];
  }

  /**
   * Continues to the end of this search, or until `performance.now()` is `untilMs`.
   *
   * @param mounts undefined until the sandbox is set up
   * @param mappedMounts the same, and undefined where foreign mappings cannot be identified
   */
  goOn(
    processes: readonly Place[],
    untilMs: number,
    mounts?: OwnMounts,
    mappedMounts?: OwnMounts,
  ): void {
    this.#search ??= this.#start(processes, mounts, mappedMounts);
    do {
      if (this.#search.next().done !== true) continue;
      this.#whole = this.#found;
      this.#search = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  [Symbol.dispose](): void {
    this.#search?.return();
  }

  *#start(
    processes: readonly Place[],
    mounts: OwnMounts | undefined,
    mappedMounts: OwnMounts | undefined,
  ): Generator<undefined, void> {
    const { mapped } = this.#whole;
    const readsMappings = this.#searches++ % searchesPerMappings === 0;
    this.#found = new OpenFiles(readsMappings ? new Mapped() : mapped);
    if (readsMappings)
      for (const { place } of processes)
        yield* this.#found.mapped.add(place, this.#device, mapped, mappedMounts);
    let maySee = false;
    for (const { place } of processes) {
      const names = namesOf(`${place}/fd`);
      if (names === undefined && maySee && isAlive(place)) this.#found.isUncountable = true;
      // The first process is no tool's: where it is hidden, all are.
      maySee ||= names !== undefined;
      const descriptors = (names ?? []).map((name) => `fd/${name}`);
      for (const link of [...descriptors, ...(mounts === undefined ? [] : links)]) {
        this.#see(`${place}/${link}`, mounts);
        yield;
      }
    }
  }

  #see(path: string, mounts: OwnMounts | undefined): void {
    const stats = statsOf(path);
    if (stats === undefined) return;
    const { dev, ino, nlink, blocks } = stats;
    if (dev !== this.#device) this.#seeElsewhere(path, stats, mounts);
    else if (nlink === 0) this.#found.deleted.set(ino, blocks * blockBytes);
    // Named files of others are deleted when their calls end, and count from then on.
    else if (stats.isDirectory() && mounts?.isForeign(path) === true)
      this.#found.isUncountable = true;
  }

  /** Sandboxes share read-only file systems of the host: those belong to none. */
  #seeElsewhere(path: string, stats: Stats, mounts: OwnMounts | undefined): void {
    const { foreignTmpfs } = this.#found;
    const isTree = stats.isFile() || stats.isDirectory();
    if (!isTree || foreignTmpfs.has(stats.dev) || (mounts?.has(stats.dev) ?? true)) return;
    try {
      const { type, blocks, bfree, bsize } = statfsSync(path);
      if (type === tmpfsMagic) foreignTmpfs.set(stats.dev, (blocks - bfree) * bsize);
    } catch (error) {
      throwIfExhausted(error);
    }
  }
}

/** Undefined when the process is gone or hides its descriptors. */
function namesOf(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch (error) {
    throwIfExhausted(error);
    return undefined;
  }
}

function isAlive(place: string): boolean {
  const stat = readStat(place);
  return stat !== undefined && !stat.hasEnded && !stat.isExiting;
}

/** The file behind a link; nothing is opened. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
