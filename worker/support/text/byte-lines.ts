/**
 * Cuts a byte stream into lines of bounded length.
 */

/** A line without its newline, or the size of one that was too long. */
export type Line =
  | { readonly kind: "line"; readonly bytes: Buffer }
  | { readonly kind: "too-long"; readonly sizeBytes: number };

const newline = 0x0a;

/** Pieces of an unfinished line that are kept apart: each costs more than a byte that it has. */
const maxPieces = 1_024;

/** Collects chunks until a line is complete; holds at most `maxBytes` of it. */
export class LineSplitter {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #sizeBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the unfinished line is over the limit already. */
  get isOverlong(): boolean {
    return this.#sizeBytes > this.#maxBytes;
  }

  /** The lines that the next bytes of the stream complete. */
  push(chunk: Buffer): readonly Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      this.#collect(chunk.subarray(start, end));
      lines.push(this.#finish());
      start = end + 1;
    }
    this.#collect(chunk.subarray(start));
    return lines;
  }

  #collect(part: Buffer): void {
    this.#sizeBytes += part.length;
    if (this.isOverlong) this.#chunks = [];
    else if (part.length > 0) this.#chunks.push(part);
    if (this.#chunks.length > maxPieces) this.#chunks = [Buffer.concat(this.#chunks)];
  }

  #finish(): Line {
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks);
    const line: Line = this.isOverlong
      ? { kind: "too-long", sizeBytes: this.#sizeBytes }
      : { kind: "line", bytes };
    this.#chunks = [];
    this.#sizeBytes = 0;
    return line;
  }
}
