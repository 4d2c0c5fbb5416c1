/**
 * What a tool has made of its work directory: bytes on disk and files, counted piece by piece while the tool goes on.
 */
import {
  type Dir,
  type Stats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  opendirSync,
} from "node:fs";

/** Directories in each other that are looked into. What is deeper cannot be counted, and is too much by itself. */
export const maxDepth = 64;
/** What stat(2) counts in. */
export const blockBytes = 512;

/** open(2): a descriptor that names a directory without reading it. Node has no name for it; it is one everywhere. */
const O_PATH = 0x20_0000;
const enter = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** What its owner needs of a directory to look at all that is in it, and to remove it. */
const lookable = 0o700;

/** What was found in a tree, its top directory left out. */
export interface DiskUse {
  readonly bytes: number;
  /** Numbers of the files, directories and what else there is: a second name for one counts no second time. */
  readonly inodes: ReadonlySet<number>;
  /** How many they are, with those of which a walk knows no more than the name yet. */
  readonly files: number;
  /** Whether there is something below {@link maxDepth} directories. */
  readonly isTooDeep: boolean;
}

class Found implements DiskUse {
  bytes = 0;
  readonly inodes = new Set<number>();
  isTooDeep = false;
  #names = 0;

  get files(): number {
    return this.inodes.size + this.#names;
  }

  /** Has met a name; what is behind it comes later. */
  meet(): void {
    this.#names++;
  }

  /** What is behind a name that was met; undefined when it is gone. */
  add(stats: Stats | undefined): void {
    this.#names--;
    if (stats === undefined || this.inodes.has(stats.ino)) return;
    this.inodes.add(stats.ino);
    this.bytes += stats.blocks * blockBytes;
  }
}

/** A directory on the way, by the names that lead to it. */
interface Place {
  readonly name: string;
  readonly parent: Place | undefined;
  readonly depth: number;
}

/**
 * Walks through a tree once when it is made, for what is there already, and then again and again, piece by piece. Nothing is
 * opened by following a link, whatever changes meanwhile; directories that their owner cannot read are opened to it. The
 * owner disposes it.
 */
export class DiskWalk implements Disposable {
  /** The device that the tree is on, as stat(2) numbers it. */
  readonly device: number;
  /** What was there at first. */
  readonly staged: DiskUse;
  readonly #top: number;
  /** What the last walk through everything found. */
  #whole: DiskUse;
  #found = new Found();
  #walk: Generator<undefined, void>;

  /** Throws the system's error when there is no such directory. */
  constructor(path: string) {
    this.#top = openSync(path, enter);
    this.device = fstatSync(this.#top).dev;
    const staged = new Found();
    for (const _entry of walk(this.#top, staged));
    this.staged = staged;
    this.#whole = staged;
    this.#walk = walk(this.#top, this.#found);
  }

  /** What the last walk through everything has found, and what this one has so far. */
  get uses(): readonly DiskUse[] {
    return [this.#whole, this.#found];
  }

  /** Goes on to the end of this walk, or until `performance.now()` is `untilMs`, whichever is first. */
  goOn(untilMs: number): void {
    do {
      if (this.#walk.next().done !== true) continue;
      this.#whole = this.#found;
      this.#found = new Found();
      this.#walk = walk(this.#top, this.#found);
      return;
    } while (performance.now() < untilMs);
  }

  [Symbol.dispose](): void {
    this.#walk.return();
    closeSync(this.#top);
  }
}

/**
 * Adds everything below a directory to `found`, and pauses at each entry. Of each directory the names come first: they take
 * an eighth of the time that is needed to look at what is behind them.
 */
function* walk(top: number, found: Found): Generator<undefined, void> {
  const places: Place[] = [{ name: ".", parent: undefined, depth: 0 }];
  for (let place; (place = places.pop()) !== undefined;) {
    using directory = openDirectory(top, place);
    if (directory === undefined) continue;
    const names: string[] = [];
    for (let entry; (entry = directory.entries.readSync()) !== null;) {
      names.push(entry.name);
      found.meet();
      yield;
    }
    for (const name of names) {
      const stats = statsOf(below(directory.descriptor, name));
      found.add(stats);
      if (stats?.isDirectory() === true) {
        if (place.depth < maxDepth) places.push({ name, parent: place, depth: place.depth + 1 });
        else found.isTooDeep = true;
      }
      yield;
    }
  }
}

/** What is at a path; undefined when it has gone meanwhile, or somebody has closed the way to it. */
function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

interface OpenDirectory extends Disposable {
  readonly descriptor: number;
  readonly entries: Dir;
}

/** Opens a directory step by step from the top one; undefined when one on the way is gone, or none any more. */
function openDirectory(top: number, place: Place): OpenDirectory | undefined {
  const names: string[] = [];
  for (let at: Place | undefined = place; at !== undefined; at = at.parent) names.unshift(at.name);
  let descriptor = top;
  try {
    for (const name of names) {
      const next = openSync(below(descriptor, name), enter);
      if (descriptor !== top) closeSync(descriptor);
      descriptor = next;
    }
    const entries = openEntries(descriptor);
    return {
      descriptor,
      entries,
      [Symbol.dispose]: () => {
        entries.closeSync();
        closeSync(descriptor);
      },
    };
  } catch {
    if (descriptor !== top) closeSync(descriptor);
    return undefined;
  }
}

/** A tool may write where it does not let itself look. */
function openEntries(descriptor: number): Dir {
  if ((fstatSync(descriptor).mode & lookable) !== lookable)
    chmodSync(`/proc/self/fd/${descriptor}`, lookable);
  return opendirSync(below(descriptor, "."));
}

/** A path that the kernel resolves from a descriptor: nothing on the way can be exchanged. See proc_pid_fd(5). */
function below(descriptor: number, name: string): string {
  return `/proc/self/fd/${descriptor}/${name}`;
}
