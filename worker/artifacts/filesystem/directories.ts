/**
 * Keys as directories: which levels a key has on disk, and how they are walked without following
 * links.
 */
import { constants, type Stats } from "node:fs";
import { chmod, chown, type FileHandle, lstat, mkdir, open, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { O_PATH } from "../../support/open-flags.ts";
import { errorCode } from "../failures.ts";
import type { ArtifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";

/**
 * Members of the owner's group may write, as far as the umask allows. Under a base that a group
 * shares, see `share`.
 */
export const directoryMode = 0o775;

/** Needs no right to read the directory, which savers below it do not need either. */
const enter = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const groupWrites = 0o020;
/**
 * What a directory has of its base: the permissions, the group for what is made in it, and who may
 * remove there.
 */
const sharedBits = 0o3777;

/** The base directory as it is now. */
export interface Base {
  readonly path: string;
  readonly status: Stats;
  /** Whether members of its group may write: agents that run as another user than the worker. */
  readonly isShared: boolean;
}

/**
 * The directories of an artifact below the base: scope, user, session or `user`, name.
 *
 * The scope level is what follows the last slash of the scope, and is missing when nothing does
 * (see `scope.ts`).
 */
export function directoryLevels(key: ArtifactKey): readonly string[] {
  const scope = key.root.slice(key.root.lastIndexOf("/") + 1);
  const levels = [key.userId, key.sessionOrUser, key.name];
  return scope === "" ? levels : [scope, ...levels];
}

/**
 * The path of `levels` below `base`, or undefined when a level is missing or is not a directory: a
 * link, for example. Throws StoreError `unavailable` when the base itself is missing, so that a
 * lost mount is not taken for an empty store.
 */
export async function findDirectory(
  basePath: string,
  levels: readonly string[],
): Promise<string | undefined> {
  let { path } = await openBase(basePath);
  for (const level of levels) {
    path = join(path, level);
    if (!(await isDirectory(path))) return undefined;
  }
  return path;
}

/**
 * The path of `levels` below `base`, whose missing levels are made. Throws StoreError `unavailable`
 * when a level is taken by something else: a link, for example. Nothing outside the base is made or
 * changed, also while others exchange directories of the base for links.
 */
export async function ensureDirectory(base: Base, levels: readonly string[]): Promise<string> {
  await using held = new AsyncDisposableStack();
  let parent = base.path;
  for (const level of levels) {
    const path = join(parent, level);
    await makeDirectory(path);
    const directory = held.use(await openLevel(path, level));
    // The kernel resolves it from the descriptor: whoever exchanges the name of the directory
    // exchanges nothing here.
    parent = `/proc/self/fd/${directory.fd}`;
    await share(parent, await directory.stat(), base);
  }
  return join(base.path, ...levels);
}

/** Rejects with ENOENT when another saver has just deleted the only version of the artifact. */
async function openLevel(path: string, level: string): Promise<FileHandle> {
  try {
    return await open(path, enter);
  } catch (error) {
    if (errorCode(error) !== "ENOTDIR") throw error;
    throw new StoreError("unavailable", `"${level}" is not a directory in the artifact store.`, {
      cause: error,
    });
  }
}

/**
 * Gives a directory of the worker's group and mode of a base that a group shares, whatever the
 * umask is: others of the group save there too. Also one from before the base was shared. `path`
 * follows links, so it has to be that of a descriptor.
 */
async function share(path: string, status: Stats, base: Base): Promise<void> {
  if (!base.isShared || status.uid !== process.geteuid?.()) return;
  const { gid, mode } = base.status;
  try {
    if (status.gid !== gid) await chown(path, status.uid, gid);
  } catch (error) {
    // The worker is no member of that group. `--check` says so where it matters.
    if (errorCode(error) !== "EPERM") throw error;
  }
  if ((status.mode & sharedBits) !== (mode & sharedBits)) await chmod(path, mode & sharedBits);
}

/**
 * Makes one directory unless there is something by its name. Rejects when its parent is missing.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: directoryMode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

/**
 * Removes an artifact's directory if nothing is in it: to peers of the original an empty one is an
 * artifact too.
 */
export async function removeEmptyDirectory(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errorCode(error) ?? "")) throw error;
  }
}

/**
 * Looks at the base. Throws StoreError `unavailable` unless it is a directory. It may be a link:
 * where it leads is the operator's choice.
 */
export async function openBase(path: string): Promise<Base> {
  const status = await stat(path).catch((error: unknown) => {
    throw new StoreError("unavailable", "The artifact store's directory is missing.", {
      cause: error,
    });
  });
  if (status.isDirectory()) {
    return { path, status, isShared: (status.mode & groupWrites) !== 0 };
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

/** Until then a crash of the machine may take the names away, though not the content. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path);
  try {
    await directory.sync();
  } catch (error) {
    // fsync(2): the file system has no such thing for directories.
    if (errorCode(error) !== "EINVAL") throw error;
  }
}
