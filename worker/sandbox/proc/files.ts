/**
 * Reads files of /proc at once: that takes some microseconds and no disk, a tenth of what a promise
 * for each would cost.
 */
import { closeSync, openSync, readSync, readdirSync } from "node:fs";

const chunkBytes = 64 * 1024;
const chunk = Buffer.alloc(chunkBytes);

/**
 * Codes of a failure that says nothing of what was looked at: this process, or the host, has no
 * more to look with.
 */
const exhausted: readonly (string | undefined)[] = ["EMFILE", "ENFILE", "ENOMEM"];

/**
 * Passes on a failure that says nothing of what was looked at; of any other the caller knows what
 * it means.
 */
export function throwIfExhausted(error: unknown): void {
  if (exhausted.includes((error as NodeJS.ErrnoException).code)) throw error;
}

/**
 * The text of a file of /proc; empty when the process is gone, or what it has is not for this one
 * to see. Throws the system's error when this process can open nothing more; so do the others here.
 */
export function readProc(path: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    let text = "";
    for (let length; (length = readSync(descriptor, chunk)) > 0;)
      text += chunk.toString("latin1", 0, length);
    return text;
  } catch (error) {
    throwIfExhausted(error);
    return "";
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** As {@link readProc}, of a file that the kernel writes at once. */
export function readProcRecord(path: string): string {
  try {
    return readRecord(path);
  } catch (error) {
    throwIfExhausted(error);
    return "";
  }
}

/**
 * The text of a file that the kernel writes at once, as it does those that are about one thing:
 * what is not in the first {@link chunkBytes} is left out. Throws the system's error.
 */
export function readRecord(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    return chunk.toString("latin1", 0, readSync(descriptor, chunk));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * A list of /proc, some whole lines at a time, as many as the kernel tells at once: a page of them.
 * Ends when the process is gone, or what it has is not for this one to see.
 */
export function* linesOfProc(path: string): Generator<string, void> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    for (let length; (length = readSync(descriptor, chunk)) > 0;)
      yield chunk.toString("latin1", 0, length);
  } catch (error) {
    throwIfExhausted(error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * The names in a directory of /proc; none when the process is gone, or what it has is not for this
 * one to see.
 */
export function listProc(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    throwIfExhausted(error);
    return [];
  }
}
