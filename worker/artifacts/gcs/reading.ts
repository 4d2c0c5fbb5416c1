/**
 * Reads an object to its end.
 */
import type { Readable } from "node:stream";
import type { FileMetadata } from "@google-cloud/storage";
import { placeholderType } from "../objects/metadata.ts";
import { readToEnd } from "../objects/reading.ts";
import { reasons } from "../objects/reasons.ts";
import { type GcsBucket, generationOf } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import { isMissing, reasonOf } from "./failures.ts";

/** An object with its content. */
export interface OpenedObject {
  readonly object: FileMetadata;
  /** Errors are StoreError `unavailable`, and begin with `doing`. */
  readonly body: Readable;
}

/**
 * Opens an object in one request where the headers of its content say all about it. Rejects with
 * GcsError, of status 404 without the object. The signal cancels the opening, not the body.
 */
export async function openObject(
  bucket: GcsBucket,
  name: string,
  doing: string,
  signal: AbortSignal,
): Promise<OpenedObject> {
  const { headers, data: first } = await bucket.readLatest(name, signal);
  const told = factsIn(name, headers);
  if (told !== undefined) return { object: told, body: readObject(bucket, told, doing, first) };
  try {
    const { data: object } = await bucket.get(name, signal);
    const isSame = generationOf(object) === headers.get(generationHeader);
    if (!isSame) first.destroy();
    return { object, body: readObject(bucket, object, doing, isSame ? first : undefined) };
  } catch (error) {
    first.destroy();
    throw error;
  }
}

const generationHeader = "x-goog-generation";

/**
 * Facts in the headers of a content; undefined where metadata may say more, which the JSON API
 * sends on request only: the address of an empty object's content, or another MIME type.
 */
function factsIn(name: string, headers: Headers): FileMetadata | undefined {
  const generation = headers.get(generationHeader);
  const size = headers.get("x-goog-stored-content-length");
  const contentType = headers.get("content-type");
  const [, crc32c] = /(?:^|[,\s])crc32c=([^,\s]+)/.exec(headers.get("x-goog-hash") ?? "") ?? [];
  if (generation === null || contentType === null || crc32c === undefined) return undefined;
  if (!Number(size) || contentType === placeholderType) return undefined;
  return { name, generation, size: Number(size), contentType, crc32c };
}

/** The whole content. Requested when it is read, but for a first response. */
function readObject(
  bucket: GcsBucket,
  { name = "", size, crc32c, ...facts }: FileMetadata,
  doing: string,
  first: Readable | undefined,
): Readable {
  const checksum = new Checksum();
  const generation = generationOf(facts);
  return readToEnd({
    sizeBytes: Number(size),
    doing,
    ...(first !== undefined && { first }),
    // Another object of this name would not be the rest.
    rest: (offset, signal) => bucket.read(name, { generation, offset }, signal),
    update: (chunk) => checksum.update(chunk),
    isDamaged: () => crc32c !== undefined && crc32c !== checksum.value,
    reasonOf: (error) => (isMissing(error) ? reasons.gone : reasonOf(error)),
  });
}
