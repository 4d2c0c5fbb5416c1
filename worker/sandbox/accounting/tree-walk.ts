/**
 * A walk through a tree that somebody may change meanwhile: piece by piece, from descriptor to
 * descriptor, by no link.
 */
import {
  type BigIntStats,
  type Dir,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  opendirSync,
  readdirSync,
} from "node:fs";
import { O_PATH } from "../../support/open-flags.ts";
import { throwIfExhausted } from "../proc/files.ts";

/**
 * Directories in each other that are looked into: a walk keeps so many descriptors, and one more.
 */
export const maxDepth = 32;
/** Bytes of a directory up to which its names are read at once: some hundred names. */
const maxBytesAtOnce = 4096;
/** Looks in a row into a directory that somebody closes again and again. */
const maxAttempts = 16;

const enter = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** What its owner needs of a directory to look at all that is in it, and to remove it. */
const lookable = 0o700;

/** Is told what a walk finds. */
export interface TreeVisitor {
  /** So many more names. What is behind them comes later, one by one, unless it is gone by then. */
  meet(names: number): void;
  /** What is behind a name that was met. */
  see(stats: BigIntStats): void;
  /**
   * There is something that no walk can look at: it is too deep, or closed as often as it is
   * opened.
   */
  miss(): void;
}

/**
 * Opens the top of a tree, for its owner to close. Throws the system's error when there is no such
 * directory.
 */
export function openTop(path: string): number {
  return openSync(path, enter);
}

/**
 * Tells of everything below a directory, and pauses at each entry and each directory: what it does
 * between two pauses takes about the same time in every tree. Of a directory the names come first:
 * they take a fraction of the time that is needed to look at what is behind them. Directories that
 * their owner cannot look into are opened to it.
 *
 * @param top a descriptor of {@link openTop}
 */
export function* walkTree(top: number, visitor: TreeVisitor): Generator<undefined, void> {
  using way = new Way(top, visitor);
  yield* lookAround(way, visitor);
  for (;;) {
    const name = way.here.directories.pop();
    if (name === undefined && !way.leave()) return;
    if (name !== undefined && way.enter(name)) yield* lookAround(way, visitor);
    yield;
  }
}

interface Level {
  readonly descriptor: number;
  /** Directories in it that are still to be looked into. */
  readonly directories: string[];
}

/**
 * The directories from the top one to the one that is looked into, all of them open: moving them
 * changes nothing.
 */
class Way implements Disposable {
  readonly #visitor: TreeVisitor;
  readonly #top: Level;
  readonly #below: Level[] = [];

  constructor(top: number, visitor: TreeVisitor) {
    this.#top = { descriptor: top, directories: [] };
    this.#visitor = visitor;
  }

  get here(): Level {
    return this.#below.at(-1) ?? this.#top;
  }

  get isDeepest(): boolean {
    return this.#below.length === maxDepth;
  }

  /** Whether there is such a directory, and no link in its place: then that is here now. */
  enter(name: string): boolean {
    const { descriptor: outer } = this.here;
    const open = (): number => openSync(pathIn(outer, name), enter);
    const descriptor = asOwner(outer, open, this.#visitor);
    if (descriptor === undefined) return false;
    this.#below.push({ descriptor, directories: [] });
    return true;
  }

  /** Whether there was a way back; it is not at the top. */
  leave(): boolean {
    const left = this.#below.pop();
    if (left !== undefined) closeSync(left.descriptor);
    return left !== undefined;
  }

  [Symbol.dispose](): void {
    while (this.leave());
  }
}

function* lookAround(way: Way, visitor: TreeVisitor): Generator<undefined, void> {
  const { descriptor, directories } = way.here;
  for (const name of yield* namesIn(descriptor, visitor)) {
    const stats = asOwner(descriptor, () => statsOf(pathIn(descriptor, name)), visitor);
    if (stats !== undefined) visitor.see(stats);
    if (stats?.isDirectory() === true) {
      if (way.isDeepest) visitor.miss();
      else directories.push(name);
    }
    yield;
  }
}

/**
 * The names in a directory, by a character for each byte: they may be text of any kind, or none.
 */
function* namesIn(descriptor: number, visitor: TreeVisitor): Generator<undefined, string[]> {
  const path = pathIn(descriptor, ".");
  const readAll = (): string[] =>
    asOwner(descriptor, () => readdirSync(path, "latin1"), visitor) ?? [];
  if (fstatSync(descriptor).size <= maxBytesAtOnce) {
    const names = readAll();
    visitor.meet(names.length);
    yield;
    return names;
  }
  const names: string[] = [];
  const open = (): Dir => opendirSync(path, { encoding: "latin1" });
  const entries = asOwner(descriptor, open, visitor);
  if (entries === undefined) return names;
  try {
    for (let entry; (entry = entries.readSync()) !== null;) {
      names.push(entry.name);
      visitor.meet(1);
      yield;
    }
    return names;
  } catch (error) {
    throwIfExhausted(error);
    // Where a file system does not say what is a directory, Node asks about each entry, and throws
    // when one is gone.
    const all = readAll();
    visitor.meet(Math.max(0, all.length - names.length));
    return all;
  } finally {
    entries.closeSync();
  }
}

/** What is at a path; undefined when it has gone meanwhile. */
function statsOf(path: Buffer): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}

/**
 * What a look gives that needs rights on a directory. They are given back to its owner where they
 * are missing; undefined when there is nothing to see all the same.
 */
function asOwner<T>(directory: number, look: () => T, visitor: TreeVisitor): T | undefined {
  let openings = 0;
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    try {
      return look();
    } catch (error) {
      throwIfExhausted(error);
      if ((error as NodeJS.ErrnoException).code !== "EACCES") return undefined;
      if (openToOwner(directory)) openings++;
    }
  }
  // Once may be a tool's own doing. Where it did not help, this process is not the owner, and has
  // never been.
  if (openings > 1) visitor.miss();
  return undefined;
}

/** Whether a directory was closed, and is not any more. */
function openToOwner(directory: number): boolean {
  if ((fstatSync(directory).mode & lookable) === lookable) return false;
  try {
    // Not by a name in it: that is what needs the rights.
    chmodSync(`/proc/self/fd/${directory}`, lookable);
    return true;
  } catch {
    return false;
  }
}

/**
 * A path that the kernel resolves from a descriptor: nothing on the way can be exchanged. See
 * proc_pid_fd(5).
 */
function pathIn(descriptor: number, name: string): Buffer {
  return Buffer.from(`/proc/self/fd/${descriptor}/${name}`, "latin1");
}
