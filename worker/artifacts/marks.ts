/**
 * The mark contract: small files that only one worker can create and all workers see.
 */
import { randomUUID } from "node:crypto";

/** The mark with the id of the store; see {@link storeIdOf}. */
export const storeIdMark = "00.store";

/** A mark as it is now. */
export interface Mark {
  readonly content: Uint8Array;
  /** Tells one touch from another, some milliseconds apart. Opaque. */
  readonly stamp: string;
  /** Milliseconds since it was created or touched, by the store's own clock alone. */
  readonly ageMs: number;
}

/**
 * Marks by name: hexadecimal digits, then a dot and letters or digits. Methods reject with
 * StoreError `unavailable` or, once the signal has aborted, with its reason.
 */
export interface MarkStore {
  /**
   * Creates the mark unless there is one, and tells whether it did. A reader never sees a part of
   * the content, and a mark that was created outlives a crash of the machine.
   */
  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean>;
  /** Creates an empty mark unless there is one. A crash of the machine may lose it. */
  note(name: string, signal: AbortSignal): Promise<void>;
  /** Undefined when there is none. */
  read(name: string, signal: AbortSignal): Promise<Mark | undefined>;
  /** Renews a mark, whose content is lost then; nothing happens when there is none. */
  touch(name: string, signal: AbortSignal): Promise<void>;
  /** Removes a mark, if there is one. */
  remove(name: string, signal: AbortSignal): Promise<void>;
  /**
   * Removes the marks that were not touched for longer than `maxAgeMs` tells for their name, as far
   * as that is possible now.
   */
  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void>;
}

/**
 * The id of the store, made by the worker that asks first: workers with the same id share their
 * marks. Rejects with StoreError or the signal's reason.
 */
export async function storeIdOf(marks: MarkStore, signal: AbortSignal): Promise<string> {
  const own = randomUUID();
  if (await marks.create(storeIdMark, Buffer.from(own), signal)) return own;
  const mark = await marks.read(storeIdMark, signal);
  return mark === undefined ? own : Buffer.from(mark.content).toString();
}
