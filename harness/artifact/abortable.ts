/**
 * Reads a stream until a signal ends it.
 */
import { type Readable, addAbortSignal } from "node:stream";

/** The chunks of a stream. After the signal it is destroyed, and iterating rejects. */
export async function* abortable(
  stream: Readable,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  // Who iterates hears of the error; before, nobody would.
  yield* addAbortSignal(signal, stream) as AsyncIterable<Uint8Array>;
}
