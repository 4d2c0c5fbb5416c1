/**
 * Looks at everything that tools are loaded from: whether it is still what it was.
 */
import { createHash } from "node:crypto";
import { lstat, readdir, realpath } from "node:fs/promises";
import { sep } from "node:path";
import type { CodeSource } from "../../runners/runner.ts";

/** Entries that one look goes through. */
export const maxEntries = 100_000;
/**
 * Entries looked at at once: enough to keep Node's four threads for files busy, few enough that
 * calls wait for little.
 */
const concurrency = 16;

/** A directory whose entries were looked at. */
export interface SeenDirectory {
  readonly path: string;
  readonly inode: number;
}

/** What stood in the way of a look. */
export interface LookFailure {
  readonly path: string;
  /** The system's code, or `TOO_LARGE`. */
  readonly code: string;
}

/** What a look found. */
export interface CodeLook {
  /**
   * Changes whenever an entry appears, goes, leads elsewhere or is written, even when its time of
   * writing is set back. Undefined where there is too much to look at, and so nobody can say.
   */
  readonly fingerprint: string | undefined;
  /** The last change of any entry in epoch milliseconds, as the file system says. */
  readonly lastChangeMs: number;
  /** From top to bottom. */
  readonly directories: readonly SeenDirectory[];
  /** The first one. What cannot be looked at is part of the fingerprint as such. */
  readonly failure: LookFailure | undefined;
}

/** Something to look at. */
interface Place {
  readonly path: string;
  /** Levels of entries below it that are looked at as well. */
  readonly levels: number;
  /** Whether its absence is a failure. Entries that go while they are looked at are none. */
  readonly isNeeded: boolean;
}

interface Finding {
  /** What changes with the entry. */
  readonly traits: string;
  readonly lastChangeMs: number;
  readonly directory?: SeenDirectory;
  /** Entries of a directory, and what a link leads to. */
  readonly below?: readonly Place[];
  readonly target?: Place;
  readonly failure?: LookFailure;
}

/**
 * Looks at sources and at what links in them lead to. Total: what cannot be looked at is part of
 * what is found. Rejects with the signal's reason only.
 */
export async function lookAtCode(
  sources: readonly CodeSource[],
  signal: AbortSignal,
): Promise<CodeLook> {
  signal.throwIfAborted();
  const hash = createHash("sha256");
  const directories: SeenDirectory[] = [];
  let lastChangeMs = 0;
  let failure: LookFailure | undefined;
  const roots = await Promise.all(sources.map(rootOf));
  // Level by level and by name, so that the same code gives the same fingerprint.
  const places: Place[] = [...roots];
  for (let seen = 0; seen < places.length;) {
    signal.throwIfAborted();
    const findings = await Promise.all(places.slice(seen, seen + concurrency).map(examine));
    seen += findings.length;
    for (const finding of findings) {
      hash.update(finding.traits);
      lastChangeMs = Math.max(lastChangeMs, finding.lastChangeMs);
      failure ??= finding.failure;
      if (finding.directory !== undefined) directories.push(finding.directory);
      for (const place of finding.below ?? []) places.push(place);
      const { target } = finding;
      if (target !== undefined && !roots.some((root) => covers(root, target))) {
        roots.push(target);
        places.push(target);
      }
    }
    if (places.length > maxEntries) {
      const tooLarge = { path: places[0]?.path ?? "", code: "TOO_LARGE" };
      return { fingerprint: undefined, lastChangeMs, directories, failure: tooLarge };
    }
  }
  return { fingerprint: hash.digest("hex"), lastChangeMs, directories, failure };
}

/**
 * A source as what it leads to, so that links between its entries are known to lead to where the
 * look goes anyway.
 */
async function rootOf({ path, depth }: CodeSource): Promise<Place> {
  const real = await realpath(path).catch(() => path);
  const isTree = depth === "tree";
  return { path: real, levels: isTree ? Infinity : 1, isNeeded: isTree };
}

async function examine({ path, levels, isNeeded }: Place): Promise<Finding> {
  try {
    const stats = await lstat(path);
    const { mode, size, mtimeMs, ctimeMs, ino } = stats;
    const found = {
      traits: `${path}\0${mode}\0${size}\0${mtimeMs}\0${ctimeMs}\0${ino}\n`,
      lastChangeMs: ctimeMs,
    };
    if (stats.isSymbolicLink()) return await followed(path, levels, found);
    if (!stats.isDirectory() || levels === 0) return found;
    const names = (await readdir(path)).sort();
    return {
      ...found,
      directory: { path, inode: ino },
      below: names.map((name) => ({
        path: `${path}/${name}`,
        levels: levels - 1,
        isNeeded: false,
      })),
    };
  } catch (error) {
    const code = codeOf(error);
    const traits = `${path}\0${code}\n`;
    const isFailure = isNeeded || code !== "ENOENT";
    return { traits, lastChangeMs: 0, ...(isFailure ? { failure: { path, code } } : {}) };
  }
}

/**
 * A link with what it leads to, if anything: the links between the two may be exchanged as well.
 */
async function followed(path: string, levels: number, found: Finding): Promise<Finding> {
  const target = await realpath(path).catch(() => undefined);
  if (target === undefined) return found;
  return {
    ...found,
    traits: `${found.traits}${target}\n`,
    target: { path: target, levels, isNeeded: false },
  };
}

function covers(root: Place, { path, levels }: Place): boolean {
  if (root.levels < levels) return false;
  return root.path === path || (root.levels === Infinity && path.startsWith(root.path + sep));
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
