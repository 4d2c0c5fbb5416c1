/**
 * Marks as files, beside the scopes of a store: `{base}/.str-claims/{first two digits}/{name}`.
 */
import { constants } from "node:fs";
import { link, lstat, open, readdir, rm, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, guarded } from "../failures.ts";
import type { Mark, MarkStore } from "../marks.ts";
import { marksLevel } from "../scope.ts";
import { ensureDirectory, findDirectory, openBase, syncDirectory } from "./directories.ts";
import { removeLeftovers, stageFile } from "./staging.ts";

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
      try {
        await link(staged.path, join(directory, name));
      } catch (error) {
        if (errorCode(error) === "EEXIST") return false;
        throw error;
      }
      await syncDirectory(directory);
      return true;
    });
  }

  read(name: string, signal: AbortSignal): Promise<Mark | undefined> {
    return guarded(failed, signal, async () => {
      const mark = await unlessMissing(() => readMark(this.#path(name)));
      // A volume that is not mounted has no marks, which says nothing.
      if (mark === undefined) await openBase(this.#base);
      return mark;
    });
  }

  touch(name: string, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, async () => {
      const now = new Date();
      await unlessMissing(() => utimes(this.#path(name), now, now));
    });
  }

  remove(name: string, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, () => rm(this.#path(name), { force: true }));
  }

  sweep(maxAgeMs: number, signal: AbortSignal): Promise<void> {
    return guarded(failed, signal, async () => {
      const root = await findDirectory(this.#base, [marksLevel]);
      if (root === undefined) return;
      const oldestMs = Date.now() - maxAgeMs;
      for (const shard of await readdir(root)) {
        signal.throwIfAborted();
        const directory = await findDirectory(root, [shard]);
        if (directory !== undefined) await sweepDirectory(directory, oldestMs);
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

async function readMark(path: string): Promise<Mark> {
  // Opened, not looked at: NFS asks its server for the times of a file that is opened.
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { mtimeNs, ino } = await file.stat({ bigint: true });
  return { content: await file.readFile(), stamp: `${ino}-${mtimeNs}` };
}

async function sweepDirectory(directory: string, oldestMs: number): Promise<void> {
  await removeLeftovers(directory);
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    try {
      if ((await lstat(path)).mtimeMs < oldestMs) await unlink(path);
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
