/**
 * Path permissions of the host: which paths a user can pass, and change.
 */
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";

/** Permission bits of a file's mode for other users. */
export const othersRead = 0o004;
export const othersPass = 0o001;
const [othersWrite, groupWrites] = [0o002, 0o020];
/** In such a directory a user cannot replace the files of others; see inode(7). */
const sticky = 0o1000;

/** A user of this host, with all groups. */
export interface HostUser {
  readonly uid: number;
  readonly groups: readonly number[];
}

/**
 * The first directory of `path`, itself included, that other users cannot pass; undefined when all
 * can. Follows links.
 */
export async function firstPrivateDirectory(path: string): Promise<string | undefined> {
  let first: string | undefined;
  for (let directory = await realpath(path); ; directory = dirname(directory)) {
    const { mode } = await lstat(directory);
    if ((mode & othersPass) === 0) first = directory;
    if (directory === dirname(directory)) return first;
  }
}

/**
 * The file at `path`, or the nearest directory above it, that lets a user change or replace the
 * file; undefined when none does. An owner always can. Follows links, and reads only modes, not
 * access control lists.
 */
export async function firstChangeableBy(
  path: string,
  { uid, groups }: HostUser,
): Promise<string | undefined> {
  for (let part = await realpath(path); ; part = dirname(part)) {
    const stats = await lstat(part);
    const writes =
      (stats.mode & othersWrite) !== 0 ||
      ((stats.mode & groupWrites) !== 0 && groups.includes(stats.gid));
    const keepsOthers = stats.isDirectory() && (stats.mode & sticky) !== 0;
    if (stats.uid === uid || (writes && !keepsOthers)) return part;
    if (part === dirname(part)) return undefined;
  }
}
