/**
 * Opens what a tool left, relative to descriptors from before the tool's start.
 */
import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";

/** Opens a directory, and follows no link. */
export const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A path from a descriptor, of which no part can be exchanged. See proc_pid_fd(5). */
export function below(directory: FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

const shortages: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EIO"]);

/** Whether an error does not concern the file: treating it as absent would lose a tool's output. */
export function isShortage(error: unknown): boolean {
  return shortages.has((error as NodeJS.ErrnoException).code);
}
