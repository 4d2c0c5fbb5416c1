/**
 * A walk through a tree that a tool may change meanwhile: piece by piece, from descriptor to
 * descriptor, without following a link.
 */
import {
  type BigIntStats,
  type Dir,
  chmodSync,
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  opendirSync,
  readdirSync,
} from "node:fs";
import { bytesBelow, enterDirectory } from "../../support/files/below.ts";
import { throwIfExhausted } from "../proc/files.ts";

/** Nested directories that a walk enters. It keeps a descriptor for each, and one more. */
export const maxDepth = 32;
/** Size of a directory up to which its names are read together: some hundred names. */
const maxBytesAtOnce = 4096;
/** Attempts in a row at a directory that a tool closes again and again. */
const maxAttempts = 16;

/** Gets what a walk finds. */
export interface TreeVisitor {
  /** More names. What is behind them follows, unless it is gone by then. */
  list(names: number): void;
  see(stats: BigIntStats): void;
  /** Something that a walk cannot inspect: too deep, or closed as often as it is opened. */
  miss(): void;
}

/** Opens the top of a tree, for its owner to close. Throws the system's error. */
export function openTop(path: string): number {
  return openSync(path, enterDirectory);
}

/**
 * Visits everything below a directory, and pauses at each name, each entry and each directory.
 * Opens directories that their owner has closed to itself.
 *
 * @param top a descriptor of {@link openTop}
 */
export function* walkTree(top: number, visitor: TreeVisitor): Generator<undefined, void> {
  // All directories on the way stay open, so moving them hides nothing.
  const way = [{ directory: top, below: yield* visit(top, visitor) }];
  try {
    for (let here; (here = way.at(-1)) !== undefined; yield) {
      const { directory: outer, below } = here;
      const name = below.pop();
      if (name === undefined) {
        way.pop();
        if (outer !== top) closeSync(outer);
      } else if (way.length > maxDepth) {
        visitor.miss();
      } else {
        const directory = asOwner(
          outer,
          () => openSync(bytesBelow(outer, name), enterDirectory),
          visitor,
        );
        if (directory === undefined) continue;
        const inner = { directory, below: [] as string[] };
        way.push(inner);
        inner.below = yield* visit(directory, visitor);
      }
    }
  } finally {
    for (const { directory } of way.slice(1)) closeSync(directory);
  }
}

/**
 * Visits what is in one directory, and returns the directories. All names come first: listing is an
 * eighth of the work.
 */
function* visit(directory: number, visitor: TreeVisitor): Generator<undefined, string[]> {
  const directories: string[] = [];
  for (const name of yield* namesIn(directory, visitor)) {
    const path = bytesBelow(directory, name);
    const stats = asOwner(directory, () => lstatSync(path, noThrow), visitor);
    if (stats !== undefined) visitor.see(stats);
    if (stats?.isDirectory() === true) directories.push(name);
    yield;
  }
  return directories;
}

const noThrow = { bigint: true, throwIfNoEntry: false } as const;

/** Names as a character for each byte: they may be no text. */
function* namesIn(directory: number, visitor: TreeVisitor): Generator<undefined, string[]> {
  const path = bytesBelow(directory, ".");
  if (fstatSync(directory).size <= maxBytesAtOnce) {
    const all = asOwner(directory, () => readdirSync(path, "latin1"), visitor) ?? [];
    visitor.list(all.length);
    yield;
    return all;
  }
  const names: string[] = [];
  const open = (): Dir => opendirSync(path, { encoding: "latin1" });
  const entries = asOwner(directory, open, visitor);
  try {
    for (let entry; (entry = entries?.readSync() ?? null) !== null;) {
      names.push(entry.name);
      visitor.list(1);
      yield;
    }
  } catch (error) {
    // On file systems without types in directories Node asks for each, and one may be gone: the
    // rest comes with the next walk.
    throwIfExhausted(error);
  } finally {
    entries?.closeSync();
  }
  return names;
}

/** Acts on a directory, and opens it to its owner where needed; undefined when that fails. */
function asOwner<T>(directory: number, act: () => T, visitor: TreeVisitor): T | undefined {
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    try {
      return act();
    } catch (error) {
      throwIfExhausted(error);
      if ((error as NodeJS.ErrnoException).code !== "EACCES") return undefined;
    }
    try {
      // By its descriptor: a name in it would need the rights.
      chmodSync(`/proc/self/fd/${directory}`, 0o700);
    } catch {
      // It is another user's, and no tool can have closed it.
      return undefined;
    }
  }
  visitor.miss();
  return undefined;
}
