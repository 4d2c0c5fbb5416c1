/**
 * Looks at a directory tree of the host: who can read it, and whether it is still what it was.
 */
import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { othersPass, othersRead } from "./path-permissions.ts";
import { SandboxError } from "./sandbox.ts";

/** Entries of one tree that are looked at. */
const maxEntries = 100_000;
/**
 * Entries looked at at once. Node has four threads for files; the rest of them keeps these busy.
 */
const concurrency = 64;

/** What a look at a tree found. */
export interface Tree {
  /** Whether another user can read all of it. */
  readonly isReadable: boolean;
  /** Changes whenever an entry appears, goes, or is written. */
  readonly fingerprint: string;
}

/**
 * Looks at every entry of a tree, following no link below `directory`.
 * Throws SandboxError for a tree of more than 100,000 entries, else the system's error.
 */
export async function examineTree(directory: string): Promise<Tree> {
  const hash = createHash("sha256");
  let isReadable = true;
  // Level by level and by name, so that the same tree gives the same fingerprint.
  const paths = [directory];
  for (let seen = 0; seen < paths.length;) {
    const entries = await Promise.all(paths.slice(seen, seen + concurrency).map(examineEntry));
    seen += entries.length;
    for (const entry of entries) {
      hash.update(entry.traits);
      isReadable &&= entry.isReadable;
      for (const path of entry.below) paths.push(path);
    }
    if (paths.length > maxEntries)
      throw new SandboxError(`${directory} has more than ${maxEntries} entries`);
  }
  return { isReadable, fingerprint: hash.digest("hex") };
}

interface Entry {
  readonly isReadable: boolean;
  /** What changes with the entry. */
  readonly traits: string;
  /** Paths in it when it is a directory, sorted. */
  readonly below: readonly string[];
}

async function examineEntry(path: string): Promise<Entry> {
  const stats = await lstat(path);
  const needed = stats.isDirectory() ? othersRead | othersPass : othersRead;
  const names = stats.isDirectory() ? await readdir(path) : [];
  return {
    isReadable: (stats.mode & needed) === needed,
    traits: `${path}\0${stats.mode}\0${stats.size}\0${stats.mtimeMs}\0${stats.ino}\n`,
    below: names.sort().map((name) => `${path}/${name}`),
  };
}
