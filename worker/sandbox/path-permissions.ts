/**
 * Which parts of the host a user can get to, and change.
 */
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";

/** The permission bits of a file's mode that hold for everybody. */
export const othersRead = 0o004;
export const othersPass = 0o001;
const [othersWrite, groupWrites] = [0o002, 0o020];
/** Who may write to such a directory may not take away what belongs to others; see inode(7). */
const sticky = 0o1000;

/** A user of this host, and all groups that processes of his have. */
export interface HostUser {
  readonly uid: number;
  readonly groups: readonly number[];
}

/**
 * The first directory on the way to `path`, itself included, that other users cannot pass;
 * undefined when all can. Links on the way are followed: what they lead to has to be passed.
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
 * The file at `path`, or the first directory above it, that lets a user change the file or put
 * another in its place; undefined when none does. An owner does, whatever the mode is, since he can
 * change that. Links on the way are followed: what they lead to counts. Access control lists count
 * as far as they show in the mode.
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
