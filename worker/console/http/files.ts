/**
 * Files that go to the store as inputs, and artifacts that come from it.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { guessMimeType } from "../../artifacts/mime.ts";
import { type ArtifactScope, type ArtifactStore, StoreError } from "../../artifacts/store.ts";
import { Semaphore, SemaphoreFullError } from "../../support/semaphore.ts";
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
  /** Bytes that files may take there now. */
  readonly freeBytes: () => Promise<number>;
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
    // Node reads no more of a body than this.
    const sizeBytes = Number(request.headers["content-length"]);
    if (!Number.isInteger(sizeBytes))
      throw new HttpError(411, "BAD_REQUEST", "The header Content-Length is missing");
    const { scratchDir, maxBytes, freeBytes, store, scope } = this.#parts;
    if (sizeBytes > maxBytes)
      throw new HttpError(413, "TOO_LARGE", `The file has more than ${maxBytes} bytes`);
    try {
      using _transfer = await this.#transfers.acquire(signal);
      if (sizeBytes > (await freeBytes()))
        throw new HttpError(507, "RESOURCE_EXHAUSTED", "The worker's disk is too full");
      const directory = await mkdtemp(join(scratchDir, "input-"));
      try {
        const path = join(directory, "content");
        await pipeline(request, createWriteStream(path, { mode: 0o600 }), { signal });
        const source = { sizeBytes, open: () => createReadStream(path) };
        const metadata = { mimeType: guessMimeType(filename) };
        const { version } = await store.save(scope, filename, source, metadata, signal);
        return { filename, version, sizeBytes };
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    } catch (error) {
      throw toHttpError(error);
    }
  }

  /** Answers with the content of an artifact. Throws HttpError; rejects with the reason. */
  async send(
    { filename, version, mimeType }: ArtifactView,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const headers = {
      "Content-Type": /^image\/[\w.+-]+$/.test(mimeType) ? mimeType : "application/octet-stream",
      // By itself it is a download, whatever it is; a page may show it as an image.
      "Content-Disposition": `attachment; filename*=UTF-8''${encodeName(filename)}`,
      "Content-Security-Policy": "default-src 'none'; sandbox",
    };
    const { store, scope } = this.#parts;
    try {
      const { body, sizeBytes } = await store.open(scope, { filename, version }, signal);
      response.writeHead(200, { ...headers, "Content-Length": sizeBytes });
      await pipeline(body, response, { signal });
    } catch (error) {
      throw toHttpError(error);
    }
  }
}

/** RFC 8187, 3.2.1. */
function encodeName(filename: string): string {
  const hex = (character: string): string => `%${character.charCodeAt(0).toString(16)}`;
  return encodeURIComponent(filename.replace(/^user:/, "")).replace(/['()*]/g, hex);
}

const storeStatus = { "invalid-name": 400, "not-found": 404 } as const;

/** Other errors stay as they are. */
function toHttpError(error: unknown): unknown {
  if (error instanceof SemaphoreFullError)
    return new HttpError(503, "RESOURCE_EXHAUSTED", "Too many files are on their way");
  if (!(error instanceof StoreError)) return error;
  const { reason, message } = error;
  const status = reason in storeStatus ? storeStatus[reason as keyof typeof storeStatus] : 503;
  return new HttpError(status, "ARTIFACT_ERROR", message, { cause: error });
}
