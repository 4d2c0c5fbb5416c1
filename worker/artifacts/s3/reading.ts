/**
 * Reads an object to its end: a connection that is cut is followed by another one from there on,
 * which the SDK does not do.
 */
import { Readable, addAbortSignal } from "node:stream";
import { crc32 } from "node:zlib";
import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from "@aws-sdk/client-s3";
import { StoreError } from "../store.ts";
import { reasonOf } from "./failures.ts";
import { encodeCrc32 } from "./upload.ts";

/** Cuts in a row without a byte between them. */
const maxCuts = 5;

/** An object whose first response has come. */
export interface OpenedObject {
  readonly client: S3Client;
  readonly Bucket: string;
  readonly Key: string;
  readonly sizeBytes: number;
  readonly response: GetObjectCommandOutput;
  /** Begins the error's message. */
  readonly doing: string;
}

/** The whole content. Errors are StoreError `unavailable`. */
export function readToEnd(object: OpenedObject): Readable {
  return new ObjectContent(object);
}

/** Destroying it ends the request that it waits for, which a stream of a generator would not. */
class ObjectContent extends Readable {
  readonly #closing = new AbortController();
  readonly #chunks: AsyncGenerator<Uint8Array>;

  constructor(object: OpenedObject) {
    super();
    const { signal } = this.#closing;
    this.#chunks = chunksOf(object, bodyOf(object.response, signal), signal);
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => this.push(done ? null : value),
      (error: unknown) => this.destroy(error as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#closing.abort();
    callback(error);
  }
}

async function* chunksOf(
  object: OpenedObject,
  first: Readable,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const { sizeBytes, response, doing } = object;
  let [offset, cuts, checksum] = [0, 0, 0];
  let body = first;
  for (;;) {
    let cut: unknown;
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        offset += chunk.byteLength;
        cuts = 0;
        checksum = crc32(chunk, checksum);
        yield chunk;
      }
    } catch (error) {
      cut = error;
    } finally {
      body.destroy();
    }
    if (offset >= sizeBytes) {
      if (cut !== undefined) throw failed(doing, reasonOf(cut), cut);
      if (isDamaged(response, checksum)) throw failed(doing, "it was damaged on its way");
      return undefined;
    }
    if (++cuts > maxCuts) throw failed(doing, "the connection is cut again and again", cut);
    body = await restOf(object, offset, signal);
  }
}

async function restOf(
  object: OpenedObject,
  offset: number,
  signal: AbortSignal,
): Promise<Readable> {
  const { client, Bucket, Key, response, doing } = object;
  const Range = `bytes=${offset}-`;
  try {
    // Another object of this key would not be the rest.
    const rest = new GetObjectCommand({ Bucket, Key, Range, IfMatch: response.ETag });
    return bodyOf(await client.send(rest, { abortSignal: signal }), signal);
  } catch (error) {
    throw failed(doing, reasonOf(error), error);
  }
}

/** The signal destroys it. */
function bodyOf({ Body }: GetObjectCommandOutput, signal: AbortSignal): Readable {
  // Who reads hears of errors all the same, and who reads no more need not.
  if (Body instanceof Readable)
    return addAbortSignal(
      signal,
      Body.on("error", () => undefined),
    );
  throw new TypeError("the SDK gave no stream of Node's");
}

/** The checksum of an object that was uploaded in parts may be one of its parts' checksums. */
function isDamaged(
  { ChecksumCRC32, ChecksumType }: GetObjectCommandOutput,
  checksum: number,
): boolean {
  if (ChecksumCRC32 === undefined || ChecksumType !== "FULL_OBJECT") return false;
  return ChecksumCRC32 !== encodeCrc32(checksum);
}

function failed(doing: string, reason: string, cause?: unknown): StoreError {
  return new StoreError("unavailable", `${doing}: ${reason}.`, { cause });
}
