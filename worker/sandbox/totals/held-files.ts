/**
 * Files of a sandbox that have no name any more: what its processes hold open or mapped takes room on the disk, and no walk
 * finds it.
 */
import { type Stats, statSync } from "node:fs";
import { blockBytes } from "./disk-use.ts";
import { listProc } from "../proc/files.ts";
import type { SeenProcess } from "./process-tree.ts";

/** Bytes of each file, by the file's number. */
export type HeldFiles = ReadonlyMap<number, number>;

/**
 * Looks for such files on one device among the descriptors of all processes, again and again. What is on its way from one
 * process to another over a socket is in none of them.
 */
export class HeldFilesSearch {
  readonly #device: number;
  #found = new Map<number, number>();
  #search: Generator<undefined, void> | undefined;
  #whole: HeldFiles = new Map();

  /** @param device of the files, as stat(2) numbers it */
  constructor(device: number) {
    this.#device = device;
  }

  /** What the last search through all processes found, and what this one has so far. */
  get uses(): readonly HeldFiles[] {
    return [this.#whole, this.#found];
  }

  /**
   * Goes on to the end of this search, or until `performance.now()` is `untilMs`, whichever is first.
   *
   * @param mapped files that are mapped, which count too: by what a descriptor tells of them, where one is open
   */
  goOn(processes: readonly Pick<SeenProcess, "place">[], mapped: HeldFiles, untilMs: number): void {
    this.#search ??= this.#begin(processes, mapped);
    do {
      if (this.#search.next().done !== true) continue;
      this.#whole = this.#found;
      this.#found = new Map();
      this.#search = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  *#begin(
    processes: readonly Pick<SeenProcess, "place">[],
    mapped: HeldFiles,
  ): Generator<undefined, void> {
    for (const [inode, bytes] of mapped) this.#found.set(inode, bytes);
    for (const { place } of processes) {
      for (const name of listProc(`${place}/fd`)) {
        const stats = statsOf(`${place}/fd/${name}`);
        if (stats?.nlink === 0 && stats.dev === this.#device)
          this.#found.set(stats.ino, stats.blocks * blockBytes);
        yield;
      }
    }
  }
}

/** The file behind a descriptor of another process; nothing is opened. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
