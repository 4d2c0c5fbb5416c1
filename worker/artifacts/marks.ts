/**
 * The mark contract: small files that one worker creates and all workers see.
 */
import { randomUUID } from "node:crypto";

/** The mark with the id of the store; see {@link storeIdOf}. */
export const storeIdMark = "00.store";

/** The present state of a mark. */
export interface Mark {
  readonly content: Uint8Array;
  /** Changes with each touch, some milliseconds apart. Opaque. */
  readonly stamp: string;
  /** Milliseconds since its creation or last touch, by the store's clock. */
  readonly ageMs: number;
}

/**
 * Marks by name: hexadecimal digits, then a dot and letters or digits. Methods reject with
 * StoreError `unavailable` or the signal's reason.
 */
export interface MarkStore {
  /**
   * Creates a mark; false when it exists. Readers see the whole content, and the mark survives a
   * crash of the machine.
   */
  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean>;
  /** Creates an empty mark unless it exists. A crash of the machine may lose it. */
  note(name: string, signal: AbortSignal): Promise<void>;
  /** Undefined when it does not exist. */
  read(name: string, signal: AbortSignal): Promise<Mark | undefined>;
  /** Renews an existing mark, and drops its content. */
  touch(name: string, signal: AbortSignal): Promise<void>;
  /** Removes a mark, if it exists. */
  remove(name: string, signal: AbortSignal): Promise<void>;
  /** Removes marks without a touch for `maxAgeMs` of their name, as far as possible. */
  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void>;
}

/** The id of the store, which the first worker creates. Rejects with StoreError or on abort. */
export async function storeIdOf(marks: MarkStore, signal: AbortSignal): Promise<string> {
  const own = randomUUID();
  if (await marks.create(storeIdMark, Buffer.from(own), signal)) return own;
  const mark = await marks.read(storeIdMark, signal);
  return mark === undefined ? own : Buffer.from(mark.content).toString();
}
