/**
 * Searches the sub-directories of `output/` for a file, at a bounded cost.
 */
import type { Dirent } from "node:fs";
import { type FileHandle, open, opendir } from "node:fs/promises";
import { below, isShortage, openDirectory } from "../../support/files/below.ts";

/** Directories in each other that are searched; each has a descriptor. */
const maxDepth = 16;

/** Entries that end the search: a tool may create millions. */
const maxEntries = 4_000;

/** Entries that a read takes, so that few reads read a directory. */
const bufferSize = 256;

/** What a search in sub-directories has found. */
export interface Nested {
  /** Below the directory that was searched. */
  readonly path: string;
  /** `file`: a regular file. `unsearched`: a directory beyond the bounds of the search. */
  readonly kind: "file" | "unsearched";
}

/**
 * Searches directories `names` of `top` for a regular file; undefined when they have none. Follows
 * no link. Rejects when this process lacks descriptors or memory.
 */
export async function findNestedFile(
  top: FileHandle,
  names: readonly string[],
): Promise<Nested | undefined> {
  return new Search().among(names, top, "", maxDepth);
}

class Search {
  #entriesLeft = maxEntries;

  async among(
    names: readonly string[],
    parent: FileHandle,
    path: string,
    depth: number,
  ): Promise<Nested | undefined> {
    for (const name of names) {
      if (--this.#entriesLeft < 0) return { path: `${path}${name}`, kind: "unsearched" };
      const found = await this.#in(parent, name, `${path}${name}/`, depth);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #in(
    parent: FileHandle,
    name: string,
    path: string,
    depth: number,
  ): Promise<Nested | undefined> {
    await using directory = await open(below(parent, name), openDirectory).catch(
      undefinedUnlessShort,
    );
    if (directory === undefined) return undefined;
    const entries = await this.#entriesOf(directory);
    const file = entries.find((entry) => entry.isFile());
    if (file !== undefined) return { path: path + file.name, kind: "file" };
    const directories = entries.filter((entry) => entry.isDirectory());
    const isTooDeep = depth === 1 && directories.length > 0;
    if (this.#entriesLeft <= 0 || isTooDeep) return { path, kind: "unsearched" };
    return await this.among(
      directories.map((entry) => entry.name),
      directory,
      path,
      depth - 1,
    );
  }

  /** As many as the search may still see. */
  async #entriesOf(directory: FileHandle): Promise<readonly Dirent[]> {
    const entries: Dirent[] = [];
    if (this.#entriesLeft <= 0) return entries;
    for await (const entry of await opendir(below(directory, "."), { bufferSize })) {
      if (entries.push(entry) >= this.#entriesLeft) break;
    }
    this.#entriesLeft -= entries.length;
    return entries;
  }
}

/** Absent, a link, no directory, or unreadable. */
function undefinedUnlessShort(error: unknown): undefined {
  if (isShortage(error)) throw error;
}
