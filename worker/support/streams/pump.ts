/**
 * Bytes from one stream to another.
 */
import type { Readable, Writable } from "node:stream";

/**
 * As `from.pipe(to)`, but frees the memory of each chunk that was written, of which Node else lets
 * some 64 MiB gather. Nothing may keep a chunk, nor may `to` once it is written: a socket or a
 * message of HTTP, but no transform that hands chunks on.
 *
 * @param onChunk gets each chunk before it is written
 */
export function pump(
  from: Readable,
  to: Writable,
  onChunk: (chunk: Buffer) => void = () => undefined,
): void {
  from.on("data", (chunk: Buffer) => {
    onChunk(chunk);
    const hasRoom = to.write(chunk, (error) => {
      // The system may still read the memory of a write that failed.
      if (!error) free(chunk);
    });
    if (!hasRoom) from.pause();
  });
  to.on("drain", () => from.resume());
  if (from.readableEnded) return void to.end();
  from.once("end", () => to.end());
  from.resume();
}

/** Leaves memory that is shared, such as that of small buffers and of slices. */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
