/**
 * Polls one file by the hash of its content, every two seconds and after each event in its
 * directory.
 */
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { ChangeHints } from "../support/change-hints.ts";
import type { Clock } from "../support/clock.ts";
import { revisionOf } from "./revision.ts";

/**
 * Largest manifest file, in bytes. A thousand tools with a paragraph of description each fit;
 * reading such a file takes up to half a second, during which the worker does nothing else.
 */
export const maxManifestBytes = 512 * 1024;

/** Milliseconds between two polls of the file. */
export const pollMs = 2000;

/**
 * Milliseconds for which a new content has to stay as it is before it counts: editors and copies
 * write in pieces.
 */
export const settleMs = 100;

/** A file at one moment. */
export type FileState =
  | { readonly readable: true; readonly revision: string; readonly bytes: Uint8Array }
  | { readonly readable: false; readonly reason: string };

/** How a file is followed. */
export interface WatchOptions {
  readonly clock: Clock;
  /** The content the caller has already: only what differs from it is news. */
  readonly known: FileState;
  /** {@link pollMs} unless a test sets it. */
  readonly pollMs?: number;
  /** {@link settleMs} unless a test sets it. */
  readonly settleMs?: number;
  /** Whether events in the file's directory shorten pauses. */
  readonly hints: boolean;
  /** Called once on a host that is out of inotify watches; polling goes on. */
  readonly onHintsLost: (error: unknown) => void;
}

/**
 * Yields the file whenever its content, or the reason why it has none, changed and stayed so for a
 * moment.
 *
 * It is pulled: while the consumer is busy nothing is looked at, and the next state is the newest
 * one. A file that changes at every look is reported when it has settled. Ends when `signal`
 * aborts, leaving no timer or watcher behind.
 */
export async function* watchFile(
  path: string,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<FileState, void, undefined> {
  using hints = new ChangeHints(options.onHintsLost);
  const { clock } = options;
  const leastMs = options.settleMs ?? settleMs;
  let reported = keyOf(options.known);
  let candidate: string | undefined;
  try {
    for (;;) {
      if (options.hints) hints.follow([{ path: dirname(path) }]);
      const mostMs = candidate === undefined ? (options.pollMs ?? pollMs) : leastMs;
      await hints.pause({ leastMs, mostMs }, clock, signal);
      const state = await readFileState(path);
      const key = keyOf(state);
      if (key === reported) {
        candidate = undefined;
      } else if (key === candidate) {
        candidate = undefined;
        reported = key;
        yield state;
      } else {
        candidate = key;
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Reads the file, through links, up to {@link maxManifestBytes}. Total: what stands in the way is
 * the reason.
 */
export async function readFileState(path: string): Promise<FileState> {
  try {
    // Without O_NONBLOCK a named pipe would keep `open` waiting for a writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return unreadable("is not a regular file");
    const bytes = await readUpTo(file, maxManifestBytes + 1);
    if (bytes.length > maxManifestBytes) {
      return unreadable(`is larger than ${maxManifestBytes} bytes`);
    }
    return { readable: true, revision: revisionOf(bytes), bytes };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return unreadable(code === "ENOENT" ? "does not exist" : `cannot be read (${code})`);
  }
}

async function readUpTo(file: FileHandle, limit: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(limit);
  let length = 0;
  while (length < limit) {
    const { bytesRead } = await file.read(buffer, length, limit - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function unreadable(reason: string): FileState {
  return { readable: false, reason };
}

function keyOf(state: FileState): string {
  return state.readable ? state.revision : state.reason;
}
