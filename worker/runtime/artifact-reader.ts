/**
 * Reads artifacts of a session in pieces, as a tool asks for them by its gateway.
 */
import type { Readable } from "node:stream";
import type { ArtifactScope, OpenedArtifact } from "../artifacts/store.ts";
import { StoreError } from "../artifacts/store.ts";
import type { ArtifactPiece, PieceRequest } from "../gateway/gateway.ts";
import type { CallStore } from "../invocation/audit/audited-store.ts";
import { InvocationError } from "../protocol/errors.ts";
import { abortable } from "../support/timeout.ts";

/** An artifact that has been read up to an offset. */
interface OpenContent {
  readonly filename: string;
  readonly opened: OpenedArtifact;
  readonly chunks: AsyncIterator<Buffer, undefined>;
  /** Read and not returned. */
  rest: Buffer;
  offset: number;
}

/**
 * Keeps the artifact open that was read last: pieces in their order take one request to the store.
 * Its owner disposes it after the last read.
 */
export class ArtifactReader implements Disposable {
  readonly #store: Pick<CallStore, "open">;
  readonly #scope: ArtifactScope;
  #content: OpenContent | undefined;
  /** One piece after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(store: Pick<CallStore, "open">, scope: ArtifactScope) {
    this.#store = store;
    this.#scope = scope;
  }

  /** Throws InvocationError `ARTIFACT_ERROR`, or the signal's reason. */
  read(piece: PieceRequest, signal: AbortSignal): Promise<ArtifactPiece> {
    const read = this.#turn.then(() => this.#read(piece, signal));
    this.#turn = read.catch(() => undefined);
    return read;
  }

  [Symbol.dispose](): void {
    this.#content?.opened.body.destroy();
    this.#content = undefined;
  }

  async #read(piece: PieceRequest, signal: AbortSignal): Promise<ArtifactPiece> {
    signal.throwIfAborted();
    try {
      const content = await this.#at(piece, signal);
      const { version, sizeBytes, metadata } = content.opened;
      const bytes = await take(content, piece.length, signal);
      return { bytes, version, sizeBytes, mimeType: metadata.mimeType };
    } catch (error) {
      this[Symbol.dispose]();
      signal.throwIfAborted();
      const reason = error instanceof StoreError ? error.message : "its content could not be read";
      const message = `Artifact "${piece.filename}" cannot be loaded: ${reason}`;
      throw new InvocationError("ARTIFACT_ERROR", message, { cause: error });
    }
  }

  /** The content up to the offset of a piece. */
  async #at(piece: PieceRequest, signal: AbortSignal): Promise<OpenContent> {
    const known = this.#content;
    if (known !== undefined && isNext(known, piece)) return known;
    this[Symbol.dispose]();
    const { filename, version, offset } = piece;
    const opened = await this.#store.open(this.#scope, { filename, version }, signal);
    const content = { filename, opened, chunks: chunksOf(opened.body), rest: none, offset: 0 };
    this.#content = content;
    while (content.offset < offset) {
      const skipped = await take(content, Math.min(offset - content.offset, skipBytes), signal);
      if (skipped.byteLength === 0) break;
    }
    return content;
  }
}

const none: Buffer = Buffer.alloc(0);
/** Bytes that are skipped at a time. */
const skipBytes = 1024 * 1024;

function isNext(content: OpenContent, { filename, version, offset }: PieceRequest): boolean {
  const isSame = content.filename === filename && content.offset === offset && offset > 0;
  return isSame && (version === undefined || version === content.opened.version);
}

function chunksOf(body: Readable): AsyncIterator<Buffer, undefined> {
  return (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]() as AsyncIterator<
    Buffer,
    undefined
  >;
}

/** The next bytes: fewer than asked for only at the end. */
async function take(content: OpenContent, length: number, signal: AbortSignal): Promise<Buffer> {
  const parts: Buffer[] = [];
  let missing = length;
  while (missing > 0) {
    if (content.rest.byteLength === 0) {
      const next = await abortable(content.chunks.next(), signal);
      if (next.done === true) break;
      content.rest = next.value;
    }
    const part = content.rest.subarray(0, missing);
    content.rest = content.rest.subarray(part.byteLength);
    parts.push(part);
    missing -= part.byteLength;
  }
  content.offset += length - missing;
  return Buffer.concat(parts);
}
