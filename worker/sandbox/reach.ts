/**
 * Which parts of the host a user other than the worker's can get to.
 */
import { lstat } from "node:fs/promises";
import { dirname } from "node:path";

/** The permission bits of a file's mode that hold for everybody. */
export const othersRead = 0o004;
export const othersPass = 0o001;

/** The first directory on the way to `path`, itself included, that other users cannot pass; undefined when all can. */
export async function firstPrivateDirectory(path: string): Promise<string | undefined> {
  const parent = dirname(path);
  if (parent !== path) {
    const above = await firstPrivateDirectory(parent);
    if (above !== undefined) return above;
  }
  const { mode } = await lstat(path);
  return (mode & othersPass) === 0 ? path : undefined;
}
