/**
 * Cuts content into the bodies of requests, which can be repeated, in bounded memory.
 */
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { ArrivedBytes } from "../../support/files/arrived-bytes.ts";
import { exactly } from "../content.ts";
import { notSaved } from "../failures.ts";
import type { ArtifactKey } from "../scope.ts";
import type { ArtifactSource } from "../store.ts";
import type { CleanUps } from "./clean-ups.ts";
import type { PartBuffers } from "./part-buffers.ts";

/** A content to send. */
export interface CutContent {
  readonly source: ArtifactSource;
  /** For errors. */
  readonly key: ArtifactKey;
  readonly buffers: PartBuffers;
}

/** A content to upload, and the owner of the requests that tidy up after it. */
export interface UploadContent extends CutContent {
  readonly cleanUps: CleanUps;
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
  try {
    await cut(source, key, bytes, { next, start }, signal);
    await Promise.all(sending);
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
  const next = (): Promise<Buffer> => Promise.resolve(content);
  await cut(source, key, source.sizeBytes, { next, start: () => undefined }, signal);
  const owned = stack.move();
  return { content, [Symbol.dispose]: () => owned.dispose() };
}

/** Takes parts. */
interface Parts {
  /** The buffer of the next one. */
  next(): Promise<Buffer>;
  /** Takes a part; the last one may be shorter. */
  start(buffer: Buffer, filled: number): void;
}

/** Fills parts of `bytes` with the content. */
async function cut(
  source: ArtifactSource,
  key: ArtifactKey,
  bytes: number,
  parts: Parts,
  signal: AbortSignal,
): Promise<void> {
  const { file, sizeBytes } = source;
  if (file !== undefined) return cutFile(file, key, { bytes, sizeBytes }, parts, signal);
  const write = (chunks: AsyncIterable<Uint8Array>): Promise<void> =>
    cutStream(chunks, bytes, parts);
  await pipeline(source.open(), exactly(sizeBytes, key), write, { signal });
}

async function cutStream(
  chunks: AsyncIterable<Uint8Array>,
  bytes: number,
  { next, start }: Parts,
): Promise<void> {
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
}

/** Reads whole parts: the small chunks of a stream take longer than their bytes do. */
async function cutFile(
  file: FileHandle,
  key: ArtifactKey,
  { bytes, sizeBytes }: { readonly bytes: number; readonly sizeBytes: number },
  { next, start }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const arrived = new ArrivedBytes(sizeBytes, (reason) => notSaved(key, reason));
  let position = 0;
  const read = async (buffer: Buffer): Promise<number> => {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, position);
    arrived.add(buffer.subarray(0, bytesRead));
    position += bytesRead;
    return bytesRead;
  };
  let isLast = false;
  while (!isLast) {
    const part = await next();
    const filled = Math.min(bytes, sizeBytes - position);
    const end = position + filled;
    while (position < end) {
      if ((await read(part.subarray(filled - (end - position), filled))) === 0) arrived.end();
    }
    isLast = position === sizeBytes;
    // The last part is sent only when the file is known to end there.
    if (isLast) await read(Buffer.alloc(1));
    start(part, filled);
  }
}
