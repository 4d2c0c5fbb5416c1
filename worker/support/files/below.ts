/**
 * Opens entries of a directory in a tree that others may change meanwhile: relative to the
 * directory's descriptor, as openat(2) does, and without following links.
 */
import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { O_PATH } from "../open-flags.ts";

/** Opens a directory. */
export const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Opens a directory only to look up names in it, which needs no permission to read it. */
export const enterDirectory = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Opens any entry to read it, and does not wait for the writer of a FIFO. */
export const readUntrusted = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Creates a file; fails if there is an entry of that name. */
export const createNew =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** A path from a descriptor, of which no part can be exchanged. See proc_pid_fd(5). */
export function below(directory: FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

/** The same for a name in latin1, one character for each byte: names may be no UTF-8. */
export function bytesBelow(descriptor: number, name: string): Buffer {
  return Buffer.from(`/proc/self/fd/${descriptor}/${name}`, "latin1");
}

const shortages: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EIO"]);

/** Whether an error does not concern the entry: treating it as absent would lose its content. */
export function isShortage(error: unknown): boolean {
  return shortages.has((error as NodeJS.ErrnoException).code);
}
