/**
 * Files that are written in full before they appear under a name that readers look for.
 */
import { lstat, open, readdir, rm, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Base } from "./directories.ts";
import { newId } from "../../support/ids.ts";

/**
 * Everybody may read, as the original's files can be read; nobody but the owner ever changes a
 * version.
 */
export const fileMode = 0o644;
/** Under a base that a group shares, whatever the umask is. */
export const sharedFileMode = 0o664;

/**
 * Age of a staged file that no living saver still writes to: a save is bounded by its call, which
 * is hours at most.
 */
export const leftoverAgeMs = 24 * 60 * 60 * 1000;

/** Never all digits, which is what versions are called. */
const stagedName = /^\.str-[0-9a-f]{24}\.tmp$/;

/**
 * A file under a name of its own. Whoever wants it to stay links it; disposing removes this name
 * only.
 */
export class StagedFile implements AsyncDisposable {
  readonly path: string;

  /** Reserves a name in `directory`; creates nothing. */
  constructor(directory: string) {
    this.path = join(directory, `.str-${newId()}.tmp`);
  }

  /**
   * A name that cannot be removed now is left to `removeLeftovers`: by then the file may be a saved
   * version.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { force: true }).catch(() => undefined);
  }
}

/**
 * Creates a file in `directory`, has it filled and waits until its content is on the disk. The
 * caller disposes it. When anything fails, nothing is left.
 */
export async function stageFile(
  directory: string,
  { isShared }: Pick<Base, "isShared">,
  fill: (file: FileHandle) => Promise<void>,
): Promise<StagedFile> {
  const staged = new StagedFile(directory);
  try {
    await using file = await open(staged.path, "wx", fileMode);
    if (isShared) await file.chmod(sharedFileMode);
    await fill(file);
    await file.sync();
  } catch (error) {
    await staged[Symbol.asyncDispose]();
    throw error;
  }
  return staged;
}

/**
 * Removes what savers that were killed left in `directory`. What cannot be removed now stays for
 * the next time.
 */
export async function removeLeftovers(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => stagedName.test(name));
  const oldestMs = Date.now() - leftoverAgeMs;
  for (const name of names) {
    const path = join(directory, name);
    try {
      if ((await lstat(path)).mtimeMs < oldestMs) await unlink(path);
    } catch {
      // Another saver was faster, the file is not ours to remove, or it is a directory: an artifact
      // by such a name.
    }
  }
}
