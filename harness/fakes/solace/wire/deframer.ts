/**
 * Cuts a byte stream into SMF frames.
 */
import { frameLength, preludeBytes } from "./frame.ts";

/** Collects chunks until a frame is complete; holds less than one frame and one chunk. */
export class Deframer {
  /** What has come and is in no frame yet, in order. */
  readonly #chunks: Buffer[] = [];
  #sizeBytes = 0;
  /** Length of the frame that has started, once its prelude is there. */
  #wantedBytes: number | undefined;

  /**
   * Takes the next bytes of the stream; the frames that they complete. Throws MalformedError, and
   * is of no use then.
   */
  *push(chunk: Buffer): Generator<Buffer, void> {
    this.#chunks.push(chunk);
    this.#sizeBytes += chunk.length;
    for (;;) {
      if (this.#wantedBytes === undefined) {
        if (this.#sizeBytes < preludeBytes) return;
        this.#wantedBytes = frameLength(Buffer.concat(this.#chunks, preludeBytes));
      }
      if (this.#sizeBytes < this.#wantedBytes) return;
      const frame = this.#take(this.#wantedBytes);
      this.#wantedBytes = undefined;
      yield frame;
    }
  }

  /**
   * The first `length` bytes, copied: whoever keeps a message must not keep the chunks that it came
   * in.
   */
  #take(length: number): Buffer {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      const chunk = this.#chunks.shift() ?? Buffer.alloc(0);
      const part = chunk.subarray(0, missing);
      if (part.length < chunk.length) this.#chunks.unshift(chunk.subarray(missing));
      parts.push(part);
      missing -= part.length;
    }
    this.#sizeBytes -= length;
    return Buffer.concat(parts, length);
  }
}
