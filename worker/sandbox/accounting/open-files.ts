/**
 * Files of a sandbox that no walk through its work directory finds: those without a name that its
 * processes hold open or mapped, which take room on the disk all the same, and what they hold of
 * other sandboxes.
 */
import { type Stats, readdirSync, statSync, statfsSync } from "node:fs";
import { blockBytes } from "./disk-usage.ts";
import { throwIfExhausted } from "../proc/files.ts";
import { readStat } from "../proc/stat.ts";
import type { OwnMounts } from "./own-mounts.ts";
import type { SeenProcess } from "./process-tree.ts";

/** What statfs(2) says of a file system in memory. */
const tmpfsMagic = 0x0102_1994;

/**
 * By these a process holds a file system besides by its descriptors: proc_pid_cwd(5) and
 * proc_pid_exe(5).
 */
const links = ["cwd", "exe"];

/** Bytes of each file, by the file's number. */
export type HeldFiles = ReadonlyMap<number, number>;

/** What one search found. */
export interface Held {
  readonly files: HeldFiles;
  /**
   * Bytes in memory file systems of other sandboxes, by device: all that is in one stays as long as
   * one file of it is held.
   */
  readonly foreignMemory: ReadonlyMap<number, number>;
  /**
   * Whether there is something that nobody can look into: another call's directory, or a process
   * that hides what it holds.
   */
  readonly isUncountable: boolean;
}

type SeenPlace = Pick<SeenProcess, "place">;

/**
 * Looks for what is held on one device, and of other sandboxes' memory, among the descriptors of
 * all processes, again and again. What is on its way from one process to another over a socket is
 * in none of them.
 */
export class HeldFilesSearch {
  readonly #device: number;
  #found = new Found();
  #search: Generator<undefined, void> | undefined;
  #whole: Held = this.#found;

  /** @param device of the files, as stat(2) numbers it */
  constructor(device: number) {
    this.#device = device;
  }

  /** What the last search through all processes found, and what this one has so far. */
  get uses(): readonly Held[] {
    return [this.#whole, this.#found];
  }

  /**
   * Goes on to the end of this search, or until `performance.now()` is `untilMs`, whichever is
   * first.
   *
   * @param mapped files that are mapped, which count too: by what a descriptor tells of them, where
   *   one is open
   * @param mounts the sandbox's, when it has been set up; without them nothing is told from others'
   */
  goOn(
    processes: readonly SeenPlace[],
    mapped: HeldFiles,
    untilMs: number,
    mounts?: OwnMounts,
  ): void {
    this.#search ??= this.#begin(processes, mapped, mounts);
    do {
      if (this.#search.next().done !== true) continue;
      this.#whole = this.#found;
      this.#found = new Found();
      this.#search = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  *#begin(
    processes: readonly SeenPlace[],
    mapped: HeldFiles,
    mounts: OwnMounts | undefined,
  ): Generator<undefined, void> {
    for (const [inode, bytes] of mapped) this.#found.files.set(inode, bytes);
    let maySee = false;
    for (const { place } of processes) {
      const names = namesOf(`${place}/fd`);
      if (names === undefined && maySee && isAlive(place)) this.#found.isUncountable = true;
      // Where nobody may look at the first process, which is no tool's, nobody may at any other.
      maySee ||= names !== undefined;
      for (const name of names ?? []) {
        this.#see(`${place}/fd/${name}`, mounts, (own) => own.isForeign(place, name));
        yield;
      }
      for (const link of mounts === undefined ? [] : links) {
        const path = `${place}/${link}`;
        this.#see(path, mounts, (own) => own.isForeignLink(path));
        yield;
      }
    }
  }

  #see(
    path: string,
    mounts: OwnMounts | undefined,
    isForeign: (mounts: OwnMounts) => boolean,
  ): void {
    const stats = statsOf(path);
    if (stats === undefined) return;
    const isHere = stats.dev === this.#device;
    if (isHere && stats.nlink === 0) this.#found.add(stats);
    else if (mounts !== undefined && isTree(stats) && isForeign(mounts)) {
      if (!isHere) this.#found.addMemory(path, stats.dev, mounts);
      // A file with a name needs no account here: others' lose theirs when their calls end, and the
      // host keeps its programs.
      else if (stats.isDirectory()) this.#found.isUncountable = true;
    }
  }
}

class Found implements Held {
  readonly files = new Map<number, number>();
  readonly foreignMemory = new Map<number, number>();
  isUncountable = false;

  add({ ino, blocks }: Stats): void {
    this.files.set(ino, blocks * blockBytes);
  }

  /**
   * Another sandbox may have the same file system of the host, such as one with tools: that is
   * nobody's.
   */
  addMemory(path: string, device: number, mounts: OwnMounts): void {
    if (this.foreignMemory.has(device) || mounts.hasDevice(device)) return;
    try {
      const { type, blocks, bfree, bsize } = statfsSync(path);
      if (type === tmpfsMagic) this.foreignMemory.set(device, (blocks - bfree) * bsize);
    } catch (error) {
      throwIfExhausted(error);
    }
  }
}

function isTree(stats: Stats): boolean {
  return stats.isFile() || stats.isDirectory();
}

/**
 * The names in a directory of /proc; undefined when this process may not see them, or the other is
 * gone.
 */
function namesOf(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch (error) {
    throwIfExhausted(error);
    return undefined;
  }
}

/** Whether a process is there that could hold something. */
function isAlive(place: string): boolean {
  const stat = readStat(place);
  return stat !== undefined && !stat.hasEnded && !stat.isExiting;
}

/** The file behind a descriptor of another process; nothing is opened. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
