/**
 * What a program writes to stdout and stderr, kept for its result. It goes on to where it went.
 */

const { from: bytesOf } = Buffer;

/** Bytes of a stream that are kept, the mark of a cut included. */
const keptMaxBytes = 64 * 1024;
const cutMark = "…";

/** The beginning of what is written to a stream from now on. */
export class KeptOutput {
  /** @type {Buffer[]} */
  #pieces = [];
  #roomBytes = keptMaxBytes - Buffer.byteLength(cutMark);
  #isCut = false;

  /** @param {NodeJS.WriteStream} stream */
  constructor(stream) {
    const { write } = stream;
    /** @type {(chunk: string | Uint8Array, ...rest: any[]) => boolean} */
    const keepAndWrite = (chunk, ...rest) => {
      this.#keep(chunk, rest[0]);
      return Reflect.apply(write, stream, [chunk, ...rest]);
    };
    stream.write = keepAndWrite;
  }

  get text() {
    const text = Buffer.concat(this.#pieces).toString("utf8");
    // The cut may be within a character.
    return this.#isCut ? `${text.replace(/\ufffd$/, "")}${cutMark}` : text;
  }

  /**
   * @param {string | Uint8Array} chunk
   * @param {unknown} encoding of a text; anything else where none is given
   */
  #keep(chunk, encoding) {
    if (this.#isCut) return;
    const bytes =
      typeof chunk === "string"
        ? bytesOf(
            chunk,
            /** @type {BufferEncoding} */ (typeof encoding === "string" ? encoding : "utf8"),
          )
        : bytesOf(chunk);
    this.#pieces.push(bytes.subarray(0, this.#roomBytes));
    this.#isCut = bytes.length > this.#roomBytes;
    this.#roomBytes -= bytes.length;
  }
}
