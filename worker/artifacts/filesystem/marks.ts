/**
 * Marks as files, beside the scopes of a store: `{base}/.str-claims/{first two digits}/{name}`.
 */
import { constants } from "node:fs";
import { link, lstat, open, readdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, guarded } from "../failures.ts";
import type { Mark, MarkStore } from "../marks.ts";
import { marksLevel } from "../scope.ts";
import { ensureDirectory, findDirectory, openBase, syncDirectory } from "./directories.ts";
import { StagedFile, fileMode, removeLeftovers, stageFile } from "./staging.ts";

/** Marks are spread over directories by this many digits. */
const shardDigits = 2;

const failed = "A mark of the call could not be kept in the artifact store";

/** Marks below the base directory of a store, an absolute path. */
export class FileMarks implements MarkStore {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean> {
    return guarded(failed, signal, async () => {
      const base = await openBase(this.#base);
      const directory = await ensureDirectory(base, levelsOf(name));
      await using staged = await stageFile(directory, base, (file) => file.writeFile(content));
      const path = join(directory, name);
      if (!(await linked(staged.path, path))) return false;
      try {
        await syncDirectory(directory);
      } catch (error) {
        // Other workers must not take it for the mark of a run whose worker ended.
        await rm(path, { force: true });
        throw error;
      }
      return true;
    });
  }

  note(name: string, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, async () => {
      const directory = await ensureDirectory(await openBase(this.#base), levelsOf(name));
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;
      await (await open(join(directory, name), flags, fileMode)).close();
    });
  }

  read(name: string, signal: AbortSignal): Promise<Mark | undefined> {
    return guarded(failed, signal, async () => {
      const directory = join(this.#base, ...levelsOf(name));
      const mark = await unlessMissing(() => readMark(directory, name));
      if (mark !== undefined) return mark;
      // A volume that is not mounted has no marks, which says nothing. NFS remembers for some time
      // that a file was missing, until its directory is opened.
      await openBase(this.#base);
      return unlessMissing(async () => {
        await (await open(directory, constants.O_RDONLY | constants.O_DIRECTORY)).close();
        return readMark(directory, name);
      });
    });
  }

  touch(name: string, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, async () => {
      // Written to, so that the time is that of the file system and not of this machine.
      await unlessMissing(() => write(this.#path(name), constants.O_WRONLY));
    });
  }

  remove(name: string, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, () => rm(this.#path(name), { force: true }));
  }

  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, async () => {
      const root = await findDirectory(this.#base, [marksLevel]);
      if (root === undefined) return;
      for (const shard of await readdir(root)) {
        signal.throwIfAborted();
        const directory = await findDirectory(root, [shard]);
        if (directory !== undefined) await sweepDirectory(directory, maxAgeMs);
      }
    });
  }

  #path(name: string): string {
    return join(this.#base, ...levelsOf(name), name);
  }
}

function levelsOf(name: string): readonly string[] {
  return [marksLevel, name.slice(0, shardDigits)];
}

/**
 * Whether the staged file is linked now; the answer to a request that NFS sent twice may be lost.
 */
async function linked(stagedPath: string, path: string): Promise<boolean> {
  try {
    await link(stagedPath, path);
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    return (await lstat(stagedPath)).nlink > 1;
  }
}

async function readMark(directory: string, name: string): Promise<Mark> {
  // Opened, not looked at: NFS asks its server for the times of a file that is opened.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
  await using file = await open(join(directory, name), flags);
  const { mtimeNs, mtimeMs, ino } = await file.stat({ bigint: true });
  const content = await file.readFile();
  return {
    content,
    stamp: `${ino}-${mtimeNs}`,
    ageMs: (await timeOf(directory)) - Number(mtimeMs),
  };
}

/** Epoch milliseconds by the file system's clock. */
async function timeOf(directory: string): Promise<number> {
  await using probe = new StagedFile(directory);
  await write(probe.path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL);
  return (await lstat(probe.path)).mtimeMs;
}

async function write(path: string, flags: number): Promise<void> {
  await using file = await open(path, flags | constants.O_NOFOLLOW, fileMode);
  await file.write("\n", 0);
}

async function sweepDirectory(
  directory: string,
  maxAgeMs: (name: string) => number,
): Promise<void> {
  await removeLeftovers(directory);
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    try {
      if (Date.now() - (await lstat(path)).mtimeMs > maxAgeMs(name)) await unlink(path);
    } catch {
      // Another worker was faster, or the file is not ours to remove.
    }
  }
}

async function unlessMissing<T>(operation: () => Promise<T>): Promise<T | undefined> {
  try {
    return await operation();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
