/**
 * CRC32C, as the API writes it: base64 of four octets.
 */
import { CRC32C } from "@google-cloud/storage";

/** The checksum of chunks, in their order. */
export class Checksum {
  readonly #crc32c = new CRC32C();

  update(chunk: Uint8Array): void {
    this.#crc32c.update(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  }

  /** That of all chunks until now. */
  get value(): string {
    return this.#crc32c.toString();
  }
}
