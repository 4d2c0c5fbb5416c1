/**
 * Uploads one object: small ones in one request, others in several. The name must be free.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { FileMetadata } from "@google-cloud/storage";
import { backoffDelays } from "../../support/backoff.ts";
import { notSaved } from "../failures.ts";
import { UnknownOutcomeError } from "../objects/bucket.ts";
import { type UploadContent, readWhole, sendInParts } from "../objects/parts.ts";
import { reasons } from "../objects/reasons.ts";
import { type GcsBucket, type NewObject, generationOf } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import type { GcsRequest, GcsResponse } from "./client.ts";
import {
  GcsError,
  failureCodes,
  isConditionFailed,
  isMissing,
  isTransient,
  unlessMissing,
} from "./failures.ts";

/** Bytes of a request: a multiple of 256 KiB, Cloud Storage, "Resumable uploads". */
const partBytes = 8 * 1024 * 1024;

/** Failures in a row without a byte that arrived, and the waits after them. */
const maxFailures = 4;
const waitsMs = { baseMs: 250, capMs: 4_000, random: () => 0.5 + Math.random() / 2 };

/** Status of an upload that goes on, of one that was cancelled, and of one that was lost. */
const [incomplete, cancelled, gone] = [308, 499, 410];

/** Parts in memory: the server takes those of an upload in their order only. */
export const partBuffers = { maxOfContent: 1, max: 10, smallBytes: 64 * 1024 } as const;

/** An upload's bucket and content. */
export interface Upload extends UploadContent {
  readonly bucket: GcsBucket;
}

/** Content whose upload may be repeated under another name. */
export interface Uploader extends Disposable {
  readonly isInParts: boolean;
  readonly ready: Promise<unknown>;
  /**
   * Rejects with GcsError, of status 412 when the name is taken, and then leaves nothing; with
   * StoreError for content that was damaged, in UnknownOutcomeError when it may be stored so.
   */
  put(object: NewObject): Promise<FileMetadata>;
}

/** Reads what fits into a request once, while the caller finds a name. The caller disposes it. */
export function createUploader(upload: Upload, signal: AbortSignal): Uploader {
  const { bucket, source } = upload;
  if (source.sizeBytes > partBytes) {
    const put = (object: NewObject): Promise<FileMetadata> => uploadParts(upload, object, signal);
    return { isInParts: true, ready: Promise.resolve(), put, [Symbol.dispose]: () => undefined };
  }
  const whole = readWhole(upload, signal);
  // The reader of `ready` meets the error.
  whole.catch(() => undefined);
  return {
    isInParts: false,
    ready: whole,
    async put(object) {
      const { content } = await whole;
      const checksum = new Checksum();
      checksum.update(content);
      const stored = await bucket.insert(object, content, checksum.value, signal);
      return verified(upload, stored, checksum, signal);
    },
    [Symbol.dispose]: () =>
      void whole.then(
        (read) => read[Symbol.dispose](),
        () => undefined,
      ),
  };
}

async function uploadParts(
  upload: Upload,
  object: NewObject,
  signal: AbortSignal,
): Promise<FileMetadata> {
  const { bucket, source } = upload;
  const url = await bucket.startUpload(object, source.sizeBytes, signal);
  const session = new UploadSession(bucket, url, source.sizeBytes);
  try {
    await sendInParts(upload, partBytes, (part, ending) => session.send(part, ending), signal);
  } catch (error) {
    // What it cannot cancel, the server forgets.
    await upload.cleanUps.run((limit) => session.cancel(limit), signal);
    throw error;
  }
  return verified(upload, session.stored, session.checksum, signal);
}

/** An upload that a server has started. */
class UploadSession {
  readonly checksum = new Checksum();
  readonly #bucket: GcsBucket;
  readonly #url: string;
  readonly #totalBytes: number;
  #sentBytes = 0;
  /** Requests that failed, and may have been carried out. */
  #failures = 0;
  #stored: FileMetadata | undefined;

  constructor(bucket: GcsBucket, url: string, totalBytes: number) {
    this.#bucket = bucket;
    this.#url = url;
    this.#totalBytes = totalBytes;
  }

  /** The object, once all is sent. Throws GcsError before. */
  get stored(): FileMetadata {
    if (this.#stored !== undefined) return this.#stored;
    throw new GcsError("the server has not completed the upload", undefined, undefined);
  }

  /** Sends the next bytes, and again those that did not arrive. */
  async send(part: Buffer, signal: AbortSignal): Promise<void> {
    this.checksum.update(part);
    const waits = backoffDelays(waitsMs);
    let [arrivedBytes, failures] = [0, 0];
    while (arrivedBytes < part.byteLength && this.#stored === undefined) {
      try {
        const response = await this.#put(part, arrivedBytes, signal);
        const bytes = this.#take(response);
        if (bytes <= arrivedBytes)
          throw new GcsError("it takes none", undefined, failureCodes.silent);
        [arrivedBytes, failures] = [bytes, 0];
      } catch (error) {
        signal.throwIfAborted();
        this.#failures++;
        if (!isTransient(error) || ++failures > maxFailures) throw error;
        await sleep(waits.next().value, undefined, { signal });
        const bytes = this.#take(await this.#ask(signal));
        if (bytes > arrivedBytes) [arrivedBytes, failures] = [bytes, 0];
      }
    }
    this.#sentBytes += part.byteLength;
  }

  async cancel(signal: AbortSignal): Promise<void> {
    const cancel = { method: "DELETE", url: this.#url, accepts: [cancelled] } as const;
    await this.#bucket.client.request(cancel, signal);
  }

  /** Bytes of the present part that have arrived; all of them once the object is stored. */
  #take({ status, headers, data }: GcsResponse<FileMetadata>): number {
    if (status === incomplete) return endOf(headers) - this.#sentBytes;
    this.#stored = data;
    return Infinity;
  }

  #put(part: Buffer, from: number, signal: AbortSignal): Promise<GcsResponse<FileMetadata>> {
    const first = this.#sentBytes + from;
    const end = this.#sentBytes + part.byteLength;
    const isLast = end === this.#totalBytes;
    const headers = {
      "content-range": `bytes ${first}-${end - 1}/${this.#totalBytes}`,
      ...(isLast && { "x-goog-hash": `crc32c=${this.checksum.value}` }),
    };
    // What has arrived of it is asked for before it is sent again.
    return this.#request({ headers, body: part.subarray(from), isRepeated: false }, signal);
  }

  /** Asks how much has arrived. */
  #ask(signal: AbortSignal): Promise<GcsResponse<FileMetadata>> {
    const headers = { "content-range": `bytes */${this.#totalBytes}` };
    return this.#request({ headers, body: Buffer.alloc(0) }, signal);
  }

  async #request(
    request: Pick<GcsRequest, "headers" | "body" | "isRepeated">,
    signal: AbortSignal,
  ): Promise<GcsResponse<FileMetadata>> {
    const put = { method: "PUT", url: this.#url, accepts: [incomplete] } as const;
    try {
      return await this.#bucket.client.request({ ...put, ...request }, signal);
    } catch (error) {
      // Servers have two statuses for an upload that they do not know.
      if (isMissing(error)) throw new GcsError("the server has lost the upload", gone, undefined);
      throw error instanceof GcsError ? error.after(this.#failures) : error;
    }
  }
}

/** Bytes that have arrived by a header `range`, which is absent before the first. */
function endOf(headers: Headers): number {
  const [, last] = /^bytes=0-(\d+)$/.exec(headers.get("range") ?? "") ?? [];
  return last === undefined ? 0 : Number(last) + 1;
}

/** The stored object. One with other content, which no server should keep, is removed. */
async function verified(
  { bucket, key, cleanUps }: Upload,
  stored: FileMetadata,
  checksum: Checksum,
  signal: AbortSignal,
): Promise<FileMetadata> {
  const { name = "", crc32c } = stored;
  if (crc32c === undefined || crc32c === checksum.value) return stored;
  const remove = (limit: AbortSignal) =>
    unlessMissing(() => bucket.delete(name, limit, generationOf(stored))).catch(
      (error: unknown) => {
        // Others have replaced it.
        if (!isConditionFailed(error)) throw error;
      },
    );
  const damaged = notSaved(key, reasons.damaged);
  throw (await cleanUps.run(remove, signal)) ? damaged : new UnknownOutcomeError(damaged);
}
