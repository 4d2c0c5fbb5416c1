/**
 * A fingerprint of everything that tools load, from the attributes of each file and directory.
 */
import { createHash } from "node:crypto";
import { lstat, readdir, realpath } from "node:fs/promises";
import type { CodeSource } from "../../runners/runner.ts";
import type { WatchedDirectory } from "../../support/change-hints.ts";

/** Entries that a fingerprint covers. */
export const maxEntries = 100_000;
/** Entries examined at a time: enough for Node's four file threads, few enough for calls. */
const concurrency = 16;

/** An entry that cannot be examined. */
export interface Unreadable {
  readonly path: string;
  /** The system's code, or `TOO_LARGE`. */
  readonly code: string;
}

/** Code at one moment. */
export interface CodeState {
  /**
   * Differs when an entry appears, goes, leads elsewhere or is written, even if its time of writing
   * is set back. Undefined above {@link maxEntries}.
   */
  readonly fingerprint: string | undefined;
  /** The last change of any entry in epoch milliseconds, by the file system's clock. */
  readonly lastChangeMs: number;
  /** From top to bottom. */
  readonly directories: readonly WatchedDirectory[];
  /** The first unreadable entry. It is part of the fingerprint as such. */
  readonly failure: Unreadable | undefined;
}

interface Entry {
  readonly path: string;
  /** Levels of entries below it that count as well. */
  readonly levels: number;
  /** Whether its absence is a failure. */
  readonly isNeeded?: boolean;
}

interface Examined {
  /** Attributes that change with the entry. */
  readonly traits: string;
  readonly lastChangeMs: number;
  readonly directory?: WatchedDirectory;
  /** Entries of a directory, or the target of a link. */
  readonly next: readonly Entry[];
  readonly failure?: Unreadable;
}

/**
 * Examines sources and the targets of links in them. An unreadable entry is part of the result.
 * Rejects with the signal's reason only.
 */
export async function fingerprintCode(
  sources: readonly CodeSource[],
  signal: AbortSignal,
  limit = maxEntries,
): Promise<CodeState> {
  const hash = createHash("sha256");
  const directories: WatchedDirectory[] = [];
  let lastChangeMs = 0;
  let failure: Unreadable | undefined;
  /** Levels below each path that were examined: links may lead to the same path in circles. */
  const levelsOf = new Map<string, number>();
  const isNew = ({ path, levels }: Entry): boolean => {
    if ((levelsOf.get(path) ?? -1) >= levels) return false;
    levelsOf.set(path, levels);
    return true;
  };
  // Level by level and by name, so that the same code has the same fingerprint.
  const queue = await Promise.all(sources.map(entryOf));
  for (let next = 0; next < queue.length;) {
    signal.throwIfAborted();
    const batch = queue.slice(next, next + concurrency);
    next += batch.length;
    for (const found of await Promise.all(batch.filter(isNew).map(examine))) {
      hash.update(found.traits);
      lastChangeMs = Math.max(lastChangeMs, found.lastChangeMs);
      failure ??= found.failure;
      if (found.directory !== undefined) directories.push(found.directory);
      for (const entry of found.next) queue.push(entry);
    }
    if (queue.length > limit) {
      const tooLarge = { path: queue[0]?.path ?? "", code: "TOO_LARGE" };
      return { fingerprint: undefined, lastChangeMs, directories, failure: tooLarge };
    }
  }
  return { fingerprint: hash.digest("hex"), lastChangeMs, directories, failure };
}

/** A source by its real path, as the targets of links are. */
async function entryOf({ path, depth }: CodeSource): Promise<Entry> {
  const isTree = depth === "tree";
  const real = await realpath(path).catch(() => path);
  return { path: real, levels: isTree ? Infinity : 1, isNeeded: isTree };
}

async function examine({ path, levels, isNeeded = false }: Entry): Promise<Examined> {
  try {
    const stats = await lstat(path);
    const { mode, size, mtimeMs, ctimeMs, ino } = stats;
    const traits = `${path}\0${mode}\0${size}\0${mtimeMs}\0${ctimeMs}\0${ino}\n`;
    const found = { traits, lastChangeMs: ctimeMs };
    if (stats.isSymbolicLink()) {
      const target = await realpath(path).catch(() => undefined);
      if (target === undefined) return { ...found, next: [] };
      // Links between the two may be exchanged as well.
      return { ...found, traits: `${traits}${target}\n`, next: [{ path: target, levels }] };
    }
    if (!stats.isDirectory() || levels === 0) return { ...found, next: [] };
    const names = (await readdir(path)).sort();
    const next = names.map((name) => ({ path: `${path}/${name}`, levels: levels - 1 }));
    return { ...found, directory: { path, inode: ino }, next };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    // An entry may go while its directory is read.
    const isFailure = isNeeded || code !== "ENOENT";
    const failure = isFailure ? { failure: { path, code } } : {};
    return { traits: `${path}\0${code}\n`, lastChangeMs: 0, next: [], ...failure };
  }
}
