/**
 * Cuts content into the bodies of requests, which can be repeated, in bounded memory.
 */
import { pipeline } from "node:stream/promises";
import { exactly } from "../content.ts";
import type { ArtifactKey } from "../scope.ts";
import type { ArtifactSource } from "../store.ts";
import type { PartBuffers } from "./part-buffers.ts";

/** A content to send. */
export interface CutContent {
  readonly source: ArtifactSource;
  /** For errors. */
  readonly key: ArtifactKey;
  readonly buffers: PartBuffers;
}

/**
 * Calls `send` with each part, in their order; an empty content is one part. Rejects with the first
 * error of `send`, whose signal ends the others, and StoreError for content of another size. No
 * part is being sent after that.
 */
export async function sendInParts(
  { source, key, buffers }: CutContent,
  partBytes: number,
  send: (part: Buffer, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const bytes = Math.min(partBytes, source.sizeBytes);
  using own = await buffers.open(bytes, signal);
  const ending = new AbortController();
  const whileSending = AbortSignal.any([signal, ending.signal]);
  const sending = new Set<Promise<void>>();
  const start = (buffer: Buffer, filled: number): void => {
    const sent = send(buffer.subarray(0, filled), whileSending).then(() => {
      own.giveBack(buffer);
      sending.delete(sent);
    });
    sending.add(sent);
    sent.catch(() => undefined);
  };
  const next = async (): Promise<Buffer> => {
    for (;;) {
      const buffer = own.take();
      if (buffer !== undefined) return buffer;
      await Promise.race(sending);
    }
  };
  const cut = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    let [part, filled] = [await next(), 0];
    for await (const chunk of chunks) {
      for (let taken = 0; taken < chunk.byteLength;) {
        if (filled === bytes) {
          start(part, filled);
          [part, filled] = [await next(), 0];
        }
        const piece = chunk.subarray(taken, taken + bytes - filled);
        part.set(piece, filled);
        filled += piece.byteLength;
        taken += piece.byteLength;
      }
    }
    start(part, filled);
    await Promise.all(sending);
  };
  try {
    await pipeline(source.open(), exactly(source.sizeBytes, key), cut, { signal });
  } finally {
    ending.abort();
    await Promise.allSettled(sending);
  }
}

/** The whole content in one buffer, which the caller disposes. Rejects as {@link sendInParts}. */
export async function readWhole(
  { source, key, buffers }: CutContent,
  signal: AbortSignal,
): Promise<Disposable & { readonly content: Buffer }> {
  using stack = new DisposableStack();
  const own = stack.use(await buffers.open(source.sizeBytes, signal));
  const content = own.take() ?? Buffer.alloc(0);
  let filled = 0;
  const fill = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of chunks) {
      content.set(chunk, filled);
      filled += chunk.byteLength;
    }
  };
  await pipeline(source.open(), exactly(source.sizeBytes, key), fill, { signal });
  const owned = stack.move();
  return { content, [Symbol.dispose]: () => owned.dispose() };
}
