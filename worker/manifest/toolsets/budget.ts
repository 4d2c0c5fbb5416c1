/**
 * What a toolset may have, and the error of one that has more or something else.
 */

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
} as const;

/** A toolset that cannot be used. Its message continues the toolset's name. */
export class ToolsetError extends Error {
  override name = "ToolsetError";
}

/** Counts what a toolset has while it is read. */
export class ToolsetBudget {
  #entries = 0;
  #bytes = 0;

  /** Counts a file or directory by its path. Throws ToolsetError. */
  entry(path: string): void {
    if (path.split("/").length > toolsetLimits.levels)
      throw new ToolsetError(`has more than ${toolsetLimits.levels} levels of directories`);
    if (++this.#entries > toolsetLimits.entries)
      throw new ToolsetError(`has more than ${toolsetLimits.entries} files and directories`);
  }

  /** Counts bytes of a file. Throws ToolsetError. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > toolsetLimits.bytes)
      throw new ToolsetError(`has files of more than ${toolsetLimits.bytes / MiB} MiB together`);
  }
}
