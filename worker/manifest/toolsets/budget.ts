/**
 * What a toolset may have, and the error of one that has more or something else.
 */

import type { Stats } from "node:fs";

const MiB = 1024 * 1024;

/** Bounds of one toolset. */
export const toolsetLimits = {
  /** Bytes of a ZIP file. */
  archiveBytes: 50 * MiB,
  /** Bytes of all files. */
  bytes: 250 * MiB,
  /** Files and directories. */
  entries: 10_000,
  /** Directories within each other. */
  levels: 32,
  /** Bytes of the manifest: the worst text of that size takes the parser a fraction of a second. */
  manifestBytes: 32 * 1024,
  /** Bytes of the worker's copies of all toolsets, with former states that are still in use. */
  togetherBytes: 4096 * MiB,
} as const;

/** A toolset that cannot be used. Its message continues the toolset's name. */
export class ToolsetError extends Error {
  override name = "ToolsetError";
}

/** The worker could not make its copy, whatever the toolset has: it has to try again. */
export class CopyError extends Error {
  override name = "CopyError";

  /** Work on the worker's own side. Rejects with CopyError for an error of the system. */
  static async of<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      throw new CopyError(`could not be copied by the worker (${code})`, { cause: error });
    }
  }
}

/**
 * Refuses a second name for a file of somebody else, which the worker may read and the toolset's
 * author may not. Throws ToolsetError.
 *
 * @param owner user id of the directory that the toolset's author writes to
 */
export function requireOwnFile({ nlink, uid }: Stats, owner: number, what: string): void {
  if (nlink > 1 && uid !== owner)
    throw new ToolsetError(`${what} a hard link to the file of another user`);
}

/** Counts what a toolset has while it is read. */
export class ToolsetBudget {
  readonly #leftTogether: number;
  #entries = 0;
  #bytes = 0;

  /** @param leftTogether bytes that the copies of all others leave */
  constructor(leftTogether: number = toolsetLimits.togetherBytes) {
    this.#leftTogether = leftTogether;
  }

  /** Counted so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a file or directory by its path. Throws ToolsetError. */
  entry(path: string): void {
    if (path.split("/").length > toolsetLimits.levels)
      throw new ToolsetError(`has more than ${toolsetLimits.levels} levels of directories`);
    if (++this.#entries > toolsetLimits.entries)
      throw new ToolsetError(`has more than ${toolsetLimits.entries} files and directories`);
  }

  /** Counts bytes of a file. Throws ToolsetError; CopyError when others leave too little. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > toolsetLimits.bytes)
      throw new ToolsetError(`has files of more than ${toolsetLimits.bytes / MiB} MiB together`);
    if (this.#bytes > this.#leftTogether)
      throw new CopyError(
        `does not fit: copies of all toolsets may have ${toolsetLimits.togetherBytes / MiB} MiB`,
      );
  }
}
