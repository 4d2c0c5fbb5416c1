/**
 * Staged files: complete before they get the name that readers open.
 */
import { lstat, open, readdir, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Base } from "./directories.ts";
import { newId } from "../../support/ids.ts";

/** Readable for all users, as in the original; only the owner changes a version. */
export const fileMode = 0o644;
/** Mode below a shared base, under any umask. */
export const sharedFileMode = 0o664;

/** Age of an abandoned staged file in milliseconds: a call, and its saves, last hours at most. */
export const leftoverAgeMs = 24 * 60 * 60 * 1000;

/** Never all digits, like the names of versions. */
const stagedName = /^\.str-[0-9a-f]{24}\.tmp$/;

/** A file under a temporary name. A link keeps the file; disposing removes the name. */
export class StagedFile implements AsyncDisposable {
  readonly path: string;

  /** Reserves a name in `directory`; creates nothing. */
  constructor(directory: string) {
    this.path = join(directory, `.str-${newId()}.tmp`);
  }

  /** After a failure the name stays for `removeLeftovers`: the file may be a saved version. */
  async [Symbol.asyncDispose](): Promise<void> {
    await unlink(this.path).catch(() => undefined);
  }
}

/**
 * Creates and fills a file in `directory`, and waits for fsync(2). The caller disposes it. After a
 * failure no file is left.
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

/** Staged files by what they are. Disposing removes their names. */
export interface StagedFiles<Kind extends string> extends AsyncDisposable {
  readonly paths: Readonly<Record<Kind, string>>;
}

/** As {@link stageFile}, together: their fsync(2) wait for the same disk. */
export async function stageFiles<Kind extends string>(
  directory: string,
  base: Pick<Base, "isShared">,
  fills: Readonly<Record<Kind, (file: FileHandle) => Promise<void>>>,
): Promise<StagedFiles<Kind>> {
  const entries = Object.entries(fills) as [Kind, (file: FileHandle) => Promise<void>][];
  const results = await Promise.allSettled(
    entries.map(async ([kind, fill]) => [kind, await stageFile(directory, base, fill)] as const),
  );
  const staged = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const dispose = async (): Promise<void> => {
    await Promise.all(staged.map(([, file]) => file[Symbol.asyncDispose]()));
  };
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) {
    await dispose();
    throw failed.reason;
  }
  const paths = Object.fromEntries(staged.map(([kind, { path }]) => [kind, path]));
  return { paths: paths as Record<Kind, string>, [Symbol.asyncDispose]: dispose };
}

/** Removes staged files of killed processes in `directory`, as far as possible. */
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
