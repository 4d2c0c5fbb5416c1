/**
 * Reads an object to its end.
 */
import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from "@aws-sdk/client-s3";
import { readToEnd } from "../objects/reading.ts";
import { reasons } from "../objects/reasons.ts";
import { isConditionFailed, isMissing, reasonOf } from "./failures.ts";
import { encodeCrc32 } from "./upload.ts";

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
export function readObject(object: OpenedObject): Readable {
  const { client, Bucket, Key, sizeBytes, response, doing } = object;
  let checksum = 0;
  return readToEnd({
    sizeBytes,
    doing,
    first: bodyOf(response),
    rest: async (offset, abortSignal) => {
      const Range = `bytes=${offset}-`;
      // Another object of this key would not be the rest.
      const rest = new GetObjectCommand({ Bucket, Key, Range, IfMatch: response.ETag });
      const found = await client.send(rest, { abortSignal });
      const body = bodyOf(found);
      if (found.ContentRange !== undefined) return body;
      body.destroy();
      throw new Error("the server ignores ranges");
    },
    update: (chunk) => void (checksum = crc32(chunk, checksum)),
    isDamaged: () => isDamaged(response, checksum),
    reasonOf: (error) =>
      isMissing(error) || isConditionFailed(error) ? reasons.gone : reasonOf(error),
  });
}

function bodyOf({ Body }: GetObjectCommandOutput): Readable {
  if (Body instanceof Readable) return Body;
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
