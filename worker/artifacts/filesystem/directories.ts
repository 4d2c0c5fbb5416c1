/**
 * Keys as directories: which levels a key has on disk, and how they are walked without following links.
 */
import { lstat, mkdir, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "../failures.ts";
import type { ArtifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";

/** Members of the owner's group may write, as far as the umask allows: agents that share the store save there too. */
export const directoryMode = 0o775;

/**
 * The directories of an artifact below the base: scope, user, session or `user`, name.
 *
 * The scope level is what follows the last slash of the scope, and is missing when nothing does (see `scope.ts`).
 */
export function directoryLevels(key: ArtifactKey): readonly string[] {
  const scope = key.root.slice(key.root.lastIndexOf("/") + 1);
  const levels = [key.userId, key.sessionOrUser, key.name];
  return scope === "" ? levels : [scope, ...levels];
}

/**
 * The path of `levels` below `base`, or undefined when a level is missing or is not a directory: a link, for example.
 * Throws StoreError `unavailable` when the base itself is missing, so that a lost mount is not taken for an empty store.
 */
export async function findDirectory(
  base: string,
  levels: readonly string[],
): Promise<string | undefined> {
  await requireBase(base);
  let path = base;
  for (const level of levels) {
    path = join(path, level);
    if (!(await isDirectory(path))) return undefined;
  }
  return path;
}

/**
 * The path of `levels` below `base`, whose missing levels are made.
 * Throws StoreError `unavailable` when the base is missing or a level is taken by something else: a link, for example.
 */
export async function ensureDirectory(base: string, levels: readonly string[]): Promise<string> {
  await requireBase(base);
  let path = base;
  for (const level of levels) {
    path = join(path, level);
    await makeDirectory(path);
    // Rejects with ENOENT when another saver has just deleted the only version of the artifact.
    if (!(await lstat(path)).isDirectory()) {
      throw new StoreError("unavailable", `"${level}" is not a directory in the artifact store.`);
    }
  }
  return path;
}

/** Makes one directory unless there is something by its name. Rejects when its parent is missing. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: directoryMode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

/** Removes an artifact's directory if nothing is in it: to peers of the original an empty one is an artifact too. */
export async function removeEmptyDirectory(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errorCode(error) ?? "")) throw error;
  }
}

/**
 * Throws StoreError `unavailable` unless the base is a directory. It may be a link: where it leads is the operator's
 * choice.
 */
export async function requireBase(base: string): Promise<void> {
  try {
    if ((await stat(base)).isDirectory()) return;
  } catch (error) {
    throw new StoreError("unavailable", "The artifact store's directory is missing.", {
      cause: error,
    });
  }
  throw new StoreError("unavailable", "The artifact store's base path is not a directory.");
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return false;
    throw error;
  }
}
