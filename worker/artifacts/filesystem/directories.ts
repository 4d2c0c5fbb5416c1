/**
 * Directories of a key: their names, and a walk that follows no link.
 */
import type { Stats } from "node:fs";
import {
  chmod,
  chown,
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  rmdir,
  stat,
} from "node:fs/promises";
import { join } from "node:path";
import { enterDirectory } from "../../support/files/below.ts";
import { errorCode } from "../failures.ts";
import type { ArtifactKey, ArtifactLevel } from "../scope.ts";
import { StoreError } from "../store.ts";

/** Group-writable, as far as the umask allows; see `share` for a shared base. */
export const directoryMode = 0o775;

const groupWrites = 0o020;
/** Mode bits that a directory has from its base: permissions, setgid, sticky. */
const sharedBits = 0o3777;

/** The present state of the base directory. */
export interface Base {
  readonly path: string;
  readonly status: Stats;
  /** Whether its group may write, for agents of another user than the worker. */
  readonly isShared: boolean;
}

/** The directories of an artifact below the base: scope, user, session or `user`, name. */
export function directoryLevels(key: ArtifactKey): readonly string[] {
  return [...outerLevels(key), key.name];
}

/**
 * The directories around all artifacts of a session, or of a user.
 *
 * The scope level is what follows the last slash of the scope, and is missing when nothing does
 * (see `scope.ts`).
 */
export function outerLevels({ root, userId, sessionOrUser }: ArtifactLevel): readonly string[] {
  const scope = root.slice(root.lastIndexOf("/") + 1);
  const levels = [userId, sessionOrUser];
  return scope === "" ? levels : [scope, ...levels];
}

/**
 * The path of `levels` below `base`; undefined when a level is no directory, such as a link.
 * Rejects with StoreError `unavailable` without the base: a lost mount is no empty store.
 */
export async function findDirectory(
  basePath: string,
  levels: readonly string[],
): Promise<string | undefined> {
  const [, found] = await Promise.all([openBase(basePath), statusesBelow(basePath, levels)]);
  return found === undefined ? undefined : join(basePath, ...levels);
}

/** All at once, each a trip to a thread and back. Undefined when a level is no directory. */
async function statusesBelow(
  basePath: string,
  levels: readonly string[],
): Promise<readonly Stats[] | undefined> {
  const paths = levels.map((_, last) => join(basePath, ...levels.slice(0, last + 1)));
  const statuses = await Promise.all(paths.map(statusOf));
  const found = statuses.filter((status) => status?.isDirectory() === true);
  return found.length < levels.length ? undefined : (found as readonly Stats[]);
}

/** Names of the directories in `directory`, links left out. */
export async function* childDirectories(directory: string): AsyncGenerator<string> {
  for await (const entry of await opendir(directory)) {
    if (entry.isDirectory()) yield entry.name;
  }
}

/**
 * Creates missing `levels` below `base`, and nothing outside, even when others exchange directories
 * for links meanwhile. Rejects with StoreError `unavailable` when a level is no directory.
 */
export async function ensureDirectory(base: Base, levels: readonly string[]): Promise<string> {
  const existing = await statusesBelow(base.path, levels);
  if (existing?.every((status) => isShared(status, base)) === true)
    return join(base.path, ...levels);
  await using held = new AsyncDisposableStack();
  let parent = base.path;
  for (const level of levels) {
    const path = join(parent, level);
    await makeDirectory(path);
    const directory = held.use(await openLevel(path, level));
    // The kernel resolves it from the descriptor, independent of the directory's name.
    parent = `/proc/self/fd/${directory.fd}`;
    await share(parent, await directory.stat(), base);
  }
  return join(base.path, ...levels);
}

/** Rejects with ENOENT when another process has just deleted the artifact's only version. */
async function openLevel(path: string, level: string): Promise<FileHandle> {
  try {
    return await open(path, enterDirectory);
  } catch (error) {
    if (errorCode(error) !== "ENOTDIR") throw error;
    throw new StoreError("unavailable", `"${level}" is not a directory in the artifact store.`, {
      cause: error,
    });
  }
}

/**
 * Sets group and mode of a shared base on a worker's directory, under any umask. `path` follows
 * links, so it must be that of a descriptor.
 */
async function share(path: string, status: Stats, base: Base): Promise<void> {
  if (isShared(status, base)) return;
  const { gid, mode } = base.status;
  try {
    if (status.gid !== gid) await chown(path, status.uid, gid);
  } catch (error) {
    // The worker is no member of that group; `--check` reports it.
    if (errorCode(error) !== "EPERM") throw error;
  }
  if ((status.mode & sharedBits) !== (mode & sharedBits)) await chmod(path, mode & sharedBits);
}

/** Whether group and mode are those of the base, as far as the worker has to set them. */
function isShared({ uid, gid, mode }: Stats, base: Base): boolean {
  if (!base.isShared || uid !== process.geteuid?.()) return true;
  return gid === base.status.gid && (mode & sharedBits) === (base.status.mode & sharedBits);
}

/** Creates a directory unless its name is taken. Rejects when its parent is missing. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: directoryMode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

/** Removes an artifact's empty directory, which peers of the original take for an artifact. */
export async function removeEmptyDirectory(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errorCode(error) ?? "")) throw error;
  }
}

/** Opens the base, which may be a link. Rejects with StoreError `unavailable` for no directory. */
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

/** Undefined where nothing is. */
async function statusOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Makes the names in a directory survive a crash of the machine. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path);
  try {
    await directory.sync();
  } catch (error) {
    // fsync(2): the file system has no such thing for directories.
    if (errorCode(error) !== "EINVAL") throw error;
  }
}
