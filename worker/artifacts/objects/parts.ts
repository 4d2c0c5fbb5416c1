/**
 * Cuts content into the bodies of requests, which can be repeated.
 */
import { pipeline } from "node:stream/promises";
import { exactly } from "../content.ts";
import type { ArtifactKey } from "../scope.ts";
import type { ArtifactSource } from "../store.ts";

/** How content is cut. */
export interface Cut {
  readonly partBytes: number;
  /** Parts that are sent at once, each in a buffer of its own. */
  readonly partsAtOnce: number;
}

/**
 * Calls `send` with each part, in their order; an empty content is one part. Rejects with the first
 * error of `send`, whose signal ends the others, and StoreError for content of another size. No
 * part is being sent after that.
 *
 * @param key for errors
 */
export async function sendInParts(
  source: ArtifactSource,
  key: ArtifactKey,
  { partBytes, partsAtOnce }: Cut,
  send: (part: Buffer, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const ending = new AbortController();
  const whileSending = AbortSignal.any([signal, ending.signal]);
  const sending = new Set<Promise<void>>();
  const free: Buffer[] = [];
  /** Resolves when another part may be filled. */
  const start = async (buffer: Buffer, filled: number): Promise<void> => {
    const sent = send(buffer.subarray(0, filled), whileSending).then(() => {
      free.push(buffer);
      sending.delete(sent);
    });
    sending.add(sent);
    sent.catch(() => undefined);
    if (sending.size >= partsAtOnce) await Promise.race(sending);
  };
  const cut = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    const bytes = Math.min(partBytes, source.sizeBytes);
    const next = (): Buffer => free.pop() ?? Buffer.allocUnsafeSlow(bytes);
    let [part, filled] = [next(), 0];
    for await (const chunk of chunks) {
      for (let taken = 0; taken < chunk.byteLength;) {
        if (filled === bytes) {
          await start(part, filled);
          [part, filled] = [next(), 0];
        }
        const piece = chunk.subarray(taken, taken + bytes - filled);
        part.set(piece, filled);
        filled += piece.byteLength;
        taken += piece.byteLength;
      }
    }
    await start(part, filled);
    await Promise.all(sending);
  };
  try {
    await pipeline(source.open(), exactly(source.sizeBytes, key), cut, { signal });
  } finally {
    ending.abort();
    await Promise.allSettled(sending);
  }
}

/** The whole content, in one buffer. Rejects as {@link sendInParts} does. */
export async function readWhole(
  source: ArtifactSource,
  key: ArtifactKey,
  signal: AbortSignal,
): Promise<Buffer> {
  let content: Buffer = Buffer.alloc(0);
  const keep = async (part: Buffer): Promise<void> => void (content = part);
  const cut = { partBytes: source.sizeBytes, partsAtOnce: 1 };
  await sendInParts(source, key, cut, keep, signal);
  return content;
}
