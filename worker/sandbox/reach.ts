/**
 * Which parts of the host a user other than the worker's can get to.
 */
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";

/** The permission bits of a file's mode that hold for everybody. */
export const othersRead = 0o004;
export const othersPass = 0o001;

/**
 * The first directory on the way to `path`, itself included, that other users cannot pass; undefined when all can.
 * Links on the way are followed: what they lead to has to be passed.
 */
export async function firstPrivateDirectory(path: string): Promise<string | undefined> {
  let first: string | undefined;
  for (let directory = await realpath(path); ; directory = dirname(directory)) {
    const { mode } = await lstat(directory);
    if ((mode & othersPass) === 0) first = directory;
    if (directory === dirname(directory)) return first;
  }
}
