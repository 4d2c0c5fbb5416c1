/**
 * Cuts content into the bodies of requests, which can be repeated.
 */
import { pipeline } from "node:stream/promises";
import { exactly } from "../content.ts";
import type { ArtifactKey } from "../scope.ts";
import type { ArtifactSource } from "../store.ts";

/**
 * Calls `send` with one buffer after the other, which is the same one each time; with the last one
 * when the content has ended. Rejects with its errors, and StoreError for content of another size.
 *
 * @param key for errors
 */
export async function sendInParts(
  source: ArtifactSource,
  key: ArtifactKey,
  partBytes: number,
  send: (part: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const cut = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    const part = Buffer.alloc(Math.min(partBytes, source.sizeBytes));
    let filled = 0;
    for await (const chunk of chunks) {
      for (let taken = 0; taken < chunk.byteLength;) {
        if (filled === part.byteLength) {
          await send(part);
          filled = 0;
        }
        const piece = chunk.subarray(taken, taken + part.byteLength - filled);
        part.set(piece, filled);
        filled += piece.byteLength;
        taken += piece.byteLength;
      }
    }
    await send(part.subarray(0, filled));
  };
  await pipeline(source.open(), exactly(source.sizeBytes, key), cut, { signal });
}

/** The whole content, in one buffer. Rejects as {@link sendInParts} does. */
export async function readWhole(
  source: ArtifactSource,
  key: ArtifactKey,
  signal: AbortSignal,
): Promise<Buffer> {
  let content: Buffer = Buffer.alloc(0);
  const keep = async (part: Buffer): Promise<void> => void (content = part);
  await sendInParts(source, key, source.sizeBytes, keep, signal);
  return content;
}
