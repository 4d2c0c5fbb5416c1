/**
 * What processes of a sandbox map that has no name: files that were removed, and memory that
 * processes share. Either stays, all of it, as long as somebody maps one page.
 */
import { type Stats, statSync } from "node:fs";
import { blockBytes } from "./disk-usage.ts";
import { deviceName } from "../proc/device-name.ts";
import { linesOfProc } from "../proc/files.ts";
import type { OwnMounts } from "./own-mounts.ts";
import type { SeenProcess } from "./process-tree.ts";

/** Looks in a row at the same sandbox of which one begins a search: these lists are long. */
export const looksPerSearch = 5;

/**
 * Files and pieces of memory that one search takes note of: who maps more must not fill the
 * worker's own memory.
 */
const maxNoted = 100_000;

/**
 * Bytes that the kernel holds for a mapping, with its place in the process's tree: 27 MB for
 * 65,000, measured on Linux 6.18.
 */
const bytesPerMapping = 416;

/**
 * Bytes of something, and whether the kernel has told them; else it is as much as is known to be
 * mapped.
 */
interface Size {
  readonly bytes: number;
  readonly isExact: boolean;
}

/** Where it is seen what a process has mapped. */
type SeenPlace = Pick<SeenProcess, "place">;

/** What one search has found so far, by device and number. */
interface Found {
  readonly files: Map<string, Size>;
  readonly shared: Map<string, Size>;
  hasForeign: boolean;
}

/**
 * Searches the mappings of all processes, piece by piece, again and again. How large something is
 * the kernel tells to privileged processes only (`map_files` in proc(5)). To others a file is as
 * large as it is mapped, and shared memory as large as it was ever seen mapped: what of it nobody
 * has touched counts too. The owner disposes it.
 */
export class MappingsSearch implements Disposable {
  readonly #deviceName: string;
  #looks = 0;
  #search: Generator<undefined, void> | undefined;
  #hasEnded = false;
  #last = nothing();
  #found = nothing();
  #files: ReadonlyMap<number, number> = new Map();
  #lastSharedBytes = 0;
  #foundSharedBytes = 0;
  #lastingSharedBytes = 0;
  #lastMappings = 0;
  #foundMappings = 0;
  #maySeeSizes = true;

  /** @param device of the files, as stat(2) numbers it */
  constructor(device: number) {
    this.#deviceName = deviceName(device);
  }

  /**
   * Bytes of each file on the device, by the file's number, that the last search through all
   * processes found.
   */
  get files(): ReadonlyMap<number, number> {
    return this.#files;
  }

  /** Bytes of shared memory that there may be. */
  get sharedBytes(): number {
    return Math.max(this.#lastSharedBytes, this.#foundSharedBytes);
  }

  /**
   * Bytes of shared memory that were there all the time from the end of one search to the beginning
   * of the next, which is under way or has ended with the last look: what both have found.
   */
  get lastingSharedBytes(): number {
    return this.#lastingSharedBytes;
  }

  /**
   * Whether another sandbox's memory was found, by the last search through all processes, or this
   * one.
   */
  get hasForeign(): boolean {
    return this.#last.hasForeign || this.#found.hasForeign;
  }

  /** Whether a search has started and not ended. */
  get isUnderWay(): boolean {
    return this.#search !== undefined;
  }

  /**
   * Bytes that the kernel holds to know of all mappings, by the last search through all processes,
   * or this one.
   */
  get kernelBytes(): number {
    return Math.max(this.#lastMappings, this.#foundMappings) * bytesPerMapping;
  }

  /**
   * Begins a search if it is time for one, and goes on to its end, or until `performance.now()` is
   * `untilMs`.
   *
   * @param mounts the sandbox's, when it has been set up; without them nothing is told from others'
   */
  goOn(processes: readonly SeenPlace[], untilMs: number, mounts?: OwnMounts): void {
    if (this.#hasEnded) this.#keepFound();
    if (this.#search === undefined && this.#looks++ % looksPerSearch !== 0) return;
    this.#search ??= this.#begin(processes, mounts);
    do {
      if (this.#search.next().done !== true) continue;
      this.#search = undefined;
      this.#hasEnded = true;
      return;
    } while (performance.now() < untilMs);
  }

  [Symbol.dispose](): void {
    this.#search?.return();
  }

  #keepFound(): void {
    this.#hasEnded = false;
    this.#last = this.#found;
    this.#found = nothing();
    const files = [...this.#last.files].map(([key, { bytes }]) => [inodeOf(key), bytes] as const);
    this.#files = new Map(files);
    this.#lastSharedBytes = this.#foundSharedBytes;
    this.#foundSharedBytes = this.#lastingSharedBytes = 0;
    this.#lastMappings = this.#foundMappings;
    this.#foundMappings = 0;
  }

  *#begin(
    processes: readonly SeenPlace[],
    mounts: OwnMounts | undefined,
  ): Generator<undefined, void> {
    for (const { place } of processes) {
      for (const lines of linesOfProc(`${place}/maps`)) {
        this.#foundMappings += lines.split("\n").length - 1;
        for (const line of lines.matchAll(unnamedLines)) this.#add(place, line);
        this.#found.hasForeign ||= mounts?.mapsForeign(place, lines) === true;
        yield;
      }
    }
  }

  #add(place: string, line: RegExpExecArray): void {
    const [, from = "", to = "", offset = "", device = "", number = "", name] = line;
    const isFile = device === this.#deviceName;
    if (!isFile && name !== sharedMemoryName) return;
    const sizes = isFile ? this.#found.files : this.#found.shared;
    const key = `${device} ${number}`;
    const known = sizes.get(key);
    if (known?.isExact === true || (known === undefined && sizes.size >= maxNoted)) return;
    // Numbers of files are used again, those of shared memory are not.
    const before = isFile ? 0 : (this.#last.shared.get(key)?.bytes ?? 0);
    const endBytes = parseInt(offset, 16) + parseInt(to, 16) - parseInt(from, 16);
    const exact = this.#exactSize(place, from, to, Number(number));
    const knownBytes = known?.bytes ?? 0;
    const bytes = exact ?? Math.max(endBytes, knownBytes, before);
    sizes.set(key, { bytes, isExact: exact !== undefined });
    if (isFile) return;
    this.#foundSharedBytes += bytes - knownBytes;
    this.#lastingSharedBytes += Math.min(bytes, before) - Math.min(knownBytes, before);
  }

  /** Undefined where this process may not know it, and when the mapping is gone. */
  #exactSize(place: string, from: string, to: string, inode: number): number | undefined {
    if (!this.#maySeeSizes) return undefined;
    // A thread has this directory only where it is looked for like a process.
    const task = place.slice(place.lastIndexOf("/"));
    const range = [from, to].map((address) => address.replace(/^0+/, "")).join("-");
    let stats: Stats;
    try {
      stats = statSync(`/proc${task}/map_files/${range}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EPERM") this.#maySeeSizes = false;
      return undefined;
    }
    return stats.ino === inode ? stats.blocks * blockBytes : undefined;
  }
}

function nothing(): Found {
  return { files: new Map(), shared: new Map(), hasForeign: false };
}

function inodeOf(key: string): number {
  return Number(key.slice(key.indexOf(" ")));
}

/** Lines of proc_pid_maps(5) of what has no name: range, offset, device, inode, former name. */
const unnamedLines =
  /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) +(.*) \(deleted\)$/gm;

/**
 * What the kernel calls memory that processes share by mmap(2). A file that is called so on purpose
 * counts as well.
 */
const sharedMemoryName = "/dev/zero";
