/**
 * Writes a stream into a new file in large blocks: each write(2) is a trip to a thread and back,
 * which takes longer than the bytes of a stream's chunk do.
 */
import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ArrivedBytes } from "./arrived-bytes.ts";

/** Bytes of a block; two are in memory for each file. */
const blockBytes = 512 * 1024;

/** Content for a file. */
export interface NewContent {
  /** Consumed or destroyed. */
  readonly body: Readable;
  /** Exact bytes, where they are known. */
  readonly sizeBytes?: number | undefined;
  /** Learns of the bytes before they are written. */
  onBytes(count: number): void;
}

/**
 * Writes the content at the beginning of an empty file, which its owner closes. Rejects with
 * WrongSizeError, the stream's and the system's error, or an AbortError.
 */
export async function writeContent(
  { body, sizeBytes, onBytes }: NewContent,
  file: FileHandle,
  signal: AbortSignal,
): Promise<void> {
  const arrived = sizeBytes === undefined ? undefined : new ArrivedBytes(sizeBytes);
  await pipeline(
    body,
    async (chunks: AsyncIterable<Uint8Array | string>) => {
      const blocks = new Blocks(file, Math.min(blockBytes, sizeBytes ?? blockBytes));
      for await (const piece of chunks) {
        const chunk = typeof piece === "string" ? Buffer.from(piece) : piece;
        arrived?.add(chunk);
        onBytes(chunk.byteLength);
        await blocks.add(chunk);
      }
      await blocks.end();
      arrived?.end();
    },
    { signal },
  );
}

/** Fills one block while the other one is written. */
class Blocks {
  readonly #file: FileHandle;
  readonly #bytes: number;
  #free: Buffer | undefined;
  #block: Buffer;
  #filled = 0;
  #position = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle, bytes: number) {
    this.#file = file;
    this.#bytes = bytes;
    this.#block = Buffer.allocUnsafeSlow(bytes);
  }

  /** Copies the chunk: its memory is the stream's again. */
  async add(chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.byteLength;) {
      if (this.#filled === this.#bytes) await this.#write();
      const piece = chunk.subarray(taken, taken + this.#bytes - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.byteLength;
      taken += piece.byteLength;
    }
  }

  async end(): Promise<void> {
    await this.#write();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const [block, filled] = [this.#block, this.#filled];
    await this.#writing;
    this.#block = this.#free ?? Buffer.allocUnsafeSlow(this.#bytes);
    this.#free = block;
    this.#filled = 0;
    this.#writing = writeFully(this.#file, block.subarray(0, filled), this.#position);
    this.#position += filled;
    // Whoever writes or ends next learns of it.
    this.#writing.catch(() => undefined);
  }
}

/**
 * Writes all bytes from a position on, and leaves the file's own position. Rejects with the
 * system's error.
 */
export async function writeFully(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < bytes.byteLength;) {
    const rest = bytes.byteLength - written;
    const { bytesWritten } = await file.write(bytes, written, rest, position + written);
    written += bytesWritten;
  }
}
