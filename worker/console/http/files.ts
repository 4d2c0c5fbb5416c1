/**
 * Files that go to the store as inputs, and artifacts that come from it.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { guessMimeType } from "../../artifacts/mime.ts";
import { type ArtifactScope, type ArtifactStore, StoreError } from "../../artifacts/store.ts";
import { Semaphore } from "../../support/semaphore.ts";
import type { ArtifactView, StoredInput } from "../api.ts";
import { HttpError } from "./failure.ts";

/** Files that are received at once, and that wait. */
const transfers = { capacity: 4, maxWaiting: 32 };

/** Where files go. */
export interface FileParts {
  readonly store: Pick<ArtifactStore, "open" | "save">;
  readonly scope: ArtifactScope;
  /** Bytes of a file, at most. */
  readonly maxBytes: number;
  /** A directory of this process. */
  readonly scratchDir: string;
}

/** Moves files between pages and the store. */
export class Files {
  readonly #parts: FileParts;
  readonly #transfers = new Semaphore(transfers);

  constructor(parts: FileParts) {
    this.#parts = parts;
  }

  /** Saves the body of a request as an artifact. Throws HttpError; rejects with the reason. */
  async receive(
    filename: string,
    request: IncomingMessage,
    signal: AbortSignal,
  ): Promise<StoredInput> {
    using _transfer = await this.#transfers.acquire(signal);
    const directory = await mkdtemp(join(this.#parts.scratchDir, "input-"));
    try {
      const path = join(directory, "content");
      const sizeBytes = await this.#receiveTo(path, request, signal);
      const source = { sizeBytes, open: () => createReadStream(path) };
      const { store, scope } = this.#parts;
      const metadata = { mimeType: guessMimeType(filename) };
      const { version } = await store.save(scope, filename, source, metadata, signal);
      return { filename, version, sizeBytes };
    } catch (error) {
      throw failureOf(error);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  /** Answers with the content of an artifact. Throws HttpError; rejects with the reason. */
  async send(
    { filename, version, mimeType }: ArtifactView,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, scope } = this.#parts;
    try {
      const { body, sizeBytes } = await store.open(scope, { filename, version }, signal);
      response.writeHead(200, {
        "Content-Type": /^image\/[\w.+-]+$/.test(mimeType) ? mimeType : "application/octet-stream",
        "Content-Length": sizeBytes,
        // By itself it is a download, whatever it is; a page may show it as an image.
        "Content-Disposition": `attachment; filename*=UTF-8''${encodeName(filename)}`,
        "Content-Security-Policy": "default-src 'none'; sandbox",
      });
      await pipeline(body, response, { signal });
    } catch (error) {
      throw failureOf(error);
    }
  }

  async #receiveTo(path: string, request: IncomingMessage, signal: AbortSignal): Promise<number> {
    const { maxBytes } = this.#parts;
    const tooLarge = new HttpError(413, "TOO_LARGE", `The file has more than ${maxBytes} bytes`);
    if (Number(request.headers["content-length"]) > maxBytes) throw tooLarge;
    let bytes = 0;
    const bounded = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.byteLength;
        done(bytes > maxBytes ? tooLarge : null, chunk);
      },
    });
    await pipeline(request, bounded, createWriteStream(path, { mode: 0o600 }), { signal });
    return bytes;
  }
}

/** RFC 8187, 3.2.1. */
function encodeName(filename: string): string {
  return encodeURIComponent(filename.replace(/^user:/, "")).replace(/['()*]/g, escape);
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  const status = { "invalid-name": 400, "not-found": 404 }[error.reason as string] ?? 503;
  return new HttpError(status, "ARTIFACT_ERROR", error.message);
}
