/**
 * Examines a directory tree of the host: whether other users can read it, and its fingerprint.
 */
import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { othersPass, othersRead } from "./path-permissions.ts";
import { SandboxError } from "./sandbox.ts";

/** Largest number of entries of a tree. */
const maxEntries = 100_000;
/** Concurrent lstat calls. Node has four threads for files; the others keep these busy. */
const concurrency = 64;

/** The result for a tree. */
export interface Tree {
  /** Whether other users can read each entry. */
  readonly isReadable: boolean;
  /** Changes when an entry is created, removed or written. */
  readonly fingerprint: string;
}

/**
 * Examines each entry of a tree; follows no link below `directory`.
 * Rejects with SandboxError for more than 100,000 entries, otherwise with the system's error.
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
  /** Changes with the entry. */
  readonly traits: string;
  /** Sorted paths of a directory's entries. */
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
