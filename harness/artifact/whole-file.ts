/**
 * Writes a file that appears under its name when it is whole.
 */
import { createWriteStream } from "node:fs";
import { link, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { newId } from "../../worker/support/ids.ts";

/** How {@link writeWholeFile} treats a file that exists. */
export interface WholeFileOptions {
  /** Otherwise it rejects with the system's EEXIST. */
  readonly replaces: boolean;
}

/**
 * Writes `content`, which it uses up, into `path`, with the mode of ordinary new files. After a
 * failure or an abort no file is left. Rejects with the system's error or the content's.
 */
export async function writeWholeFile(
  content: AsyncIterable<Uint8Array>,
  path: string,
  { replaces }: WholeFileOptions,
  signal: AbortSignal,
): Promise<void> {
  const partial = join(dirname(path), `.harness-${newId()}.part`);
  try {
    await pipeline(content, createWriteStream(partial, { flags: "wx" }), { signal });
    // link(2) replaces nothing, rename(2) does.
    await (replaces ? rename(partial, path) : link(partial, path));
  } finally {
    await rm(partial, { force: true });
  }
}
