/**
 * Text of stubs that names and descriptions of tools cannot break out of.
 */

/** The first line of stubs, in a comment. */
export const stubTitle = "Tools that a program may call. Generated.";

/** Bytes of the stubs of all tools together. */
export const maxStubBytes = 64 * 1024;

export interface StubOptions {
  /** Declares what programs find without an import. */
  readonly forPrograms?: boolean;
}

/** Characters that mean themselves in a string of any language. */
const notPlain = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/**
 * A string in double quotes, on one line.
 *
 * @param escape a character by its code point
 */
export function quoted(text: string, escape: (codePoint: number) => string): string {
  const inner = text.toWellFormed().replaceAll(/["\\]/g, "\\$&");
  const safe = inner.replaceAll(notPlain, (character) => escape(character.codePointAt(0) ?? 0));
  return `"${safe}"`;
}

/** The lines of clean notes for a comment, without what ends one. */
export function commentLines(notes: string): readonly string[] {
  return notes.replaceAll("*/", "* /").split("\n");
}

/** Parts of a text, as long as they fit into bytes. */
export class BoundedText {
  #bytesLeft: number;

  constructor(maxBytes: number) {
    this.#bytesLeft = maxBytes;
  }

  /** Spends the bytes of the parts; false, and none are spent, where they are too many. */
  fits(...parts: readonly string[]): boolean {
    const sizeBytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part) + 1, 0);
    if (sizeBytes > this.#bytesLeft) return false;
    this.#bytesLeft -= sizeBytes;
    return true;
  }
}
