/**
 * Files of a sandbox that have no name any more: what its processes hold open or mapped takes room on the disk, and no walk
 * finds it.
 */
import { type Stats, statSync } from "node:fs";
import { blockBytes } from "./disk-use.ts";
import { listProc, readProc } from "./proc-files.ts";

/** Bytes of each file, by the file's number. */
export type HeldFiles = ReadonlyMap<number, number>;

/** Looks in a row at the same sandbox of which one looks at mapped files too: these lists are long. */
const looksPerMapped = 5;

/**
 * Looks for such files on one device, through all processes again and again. What is on its way from one process to another
 * over a socket is in none of them.
 */
export class HeldFilesSearch {
  readonly #device: number;
  #pass = 0;
  #found = new Map<number, number>();
  #search: Generator<undefined, void> | undefined;
  #mapped: HeldFiles = new Map();
  #whole: HeldFiles = new Map();

  /** @param device of the files, as stat(2) numbers it */
  constructor(device: number) {
    this.#device = device;
  }

  /** What the last search through all processes found, and what this one has so far. */
  get uses(): readonly HeldFiles[] {
    return [this.#whole, this.#found];
  }

  /** Goes on to the end of this search, or until `performance.now()` is `untilMs`, whichever is first. */
  goOn(pids: readonly number[], untilMs: number): void {
    this.#search ??= this.#begin(pids);
    do {
      if (this.#search.next().done !== true) continue;
      this.#whole = this.#found;
      this.#found = new Map();
      this.#search = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  *#begin(pids: readonly number[]): Generator<undefined, void> {
    if (this.#pass++ % looksPerMapped === 0) {
      const mapped = new Map<number, number>();
      for (const pid of pids) {
        addMapped(pid, this.#device, mapped);
        yield;
      }
      this.#mapped = mapped;
    }
    for (const [inode, bytes] of this.#mapped) this.#found.set(inode, bytes);
    for (const pid of pids) {
      for (const name of listProc(`/proc/${pid}/fd`)) {
        const stats = statsOf(`/proc/${pid}/fd/${name}`);
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

/** Lines of proc_pid_maps(5) of files without a name: range, offset, device, inode. */
const deletedLines =
  /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) .* \(deleted\)$/gm;

/** The kernel does not say how large such a file is: at least up to the end of what is mapped. */
function addMapped(pid: number, device: number, files: Map<number, number>): void {
  const name = deviceName(device);
  for (const line of readProc(`/proc/${pid}/maps`).matchAll(deletedLines)) {
    const [, from = "", to = "", offset = "", on, inode] = line;
    if (on !== name) continue;
    const end = parseInt(offset, 16) + parseInt(to, 16) - parseInt(from, 16);
    files.set(Number(inode), Math.max(end, files.get(Number(inode)) ?? 0));
  }
}

/** How files of /proc write a device that stat(2) has numbered: Linux has 12 bits for one half, 20 for the other. */
export function deviceName(device: number): string {
  const major = (device >>> 8) & 0xfff;
  const minor = (device & 0xff) | ((device >>> 12) & 0xf_ff00);
  return [major, minor].map((part) => part.toString(16).padStart(2, "0")).join(":");
}
