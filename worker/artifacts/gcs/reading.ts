/**
 * Reads an object to its end.
 */
import type { Readable } from "node:stream";
import type { FileMetadata } from "@google-cloud/storage";
import { readToEnd } from "../objects/reading.ts";
import { reasons } from "../objects/reasons.ts";
import { type GcsBucket, generationOf } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import { isMissing, reasonOf } from "./failures.ts";

/** The whole content, requested when it is read. Errors are StoreError `unavailable`. */
export function readObject(
  bucket: GcsBucket,
  { name = "", size, crc32c, ...facts }: FileMetadata,
  doing: string,
): Readable {
  const checksum = new Checksum();
  const generation = generationOf(facts);
  return readToEnd({
    sizeBytes: Number(size),
    doing,
    // Another object of this name would not be the rest.
    rest: (offset, signal) => bucket.read(name, { generation, offset }, signal),
    update: (chunk) => checksum.update(chunk),
    isDamaged: () => crc32c !== undefined && crc32c !== checksum.value,
    reasonOf: (error) => (isMissing(error) ? reasons.gone : reasonOf(error)),
  });
}
