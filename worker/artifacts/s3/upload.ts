/**
 * Uploads one object, mostly under a key that must be free: small ones whole, others in parts.
 * Each request has a buffer as its body, so that the SDK can repeat it.
 */
import { crc32 } from "node:zlib";
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type CreateMultipartUploadCommandInput,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { abortable } from "../../support/timeout.ts";
import { type UploadContent, readWhole, sendInParts } from "../objects/parts.ts";

/** Bytes of a part, at least: Amazon S3 User Guide, "Amazon S3 multipart upload limits". */
const minPartBytes = 5 * 1024 * 1024;
const maxParts = 10_000;

/**
 * Parts in memory and on their way, of an upload and of all: a distant server answers each after a
 * while.
 */
export const partBuffers = { maxOfContent: 3, max: 16, smallBytes: 64 * 1024 } as const;

/** What the requests of an upload have in common. */
export type PutFacts = { readonly Bucket: string; readonly Key: string } & Pick<
  CreateMultipartUploadCommandInput,
  "ContentType" | "Metadata" | "ServerSideEncryption" | "SSEKMSKeyId" | "StorageClass"
>;

/** An upload's client and content. */
export interface Upload extends UploadContent {
  readonly client: S3Client;
  /** Whether the server verifies the checksum of the whole object. */
  readonly isVerified: boolean;
  /** Whether the key must be free. */
  readonly isConditional: boolean;
}

/** Content whose upload may be repeated under another key. */
export interface Uploader extends Disposable {
  readonly isInParts: boolean;
  readonly ready: Promise<unknown>;
  /** Rejects with the SDK's error, of status 412 when the key is taken, and then leaves nothing. */
  put(facts: PutFacts): Promise<void>;
}

/** Reads what fits into a part once, while the caller finds a key. The caller disposes it. */
export function createUploader(upload: Upload, signal: AbortSignal): Uploader {
  const { client, source, isConditional } = upload;
  if (source.sizeBytes > minPartBytes) {
    const put = (facts: PutFacts): Promise<void> => uploadParts(upload, facts, signal);
    return { isInParts: true, ready: Promise.resolve(), put, [Symbol.dispose]: () => undefined };
  }
  const whole = readWhole(upload, signal);
  // The reader of `ready` meets the error.
  whole.catch(() => undefined);
  return {
    isInParts: false,
    ready: whole,
    async put(facts) {
      const { content } = await whole;
      const put = new PutObjectCommand({
        ...facts,
        Body: content,
        // The SDK takes an empty body for one of unknown length.
        ContentLength: content.byteLength,
        ...(isConditional && { IfNoneMatch: "*" }),
      });
      await client.send(put, { abortSignal: signal });
    },
    [Symbol.dispose]: () =>
      void whole.then(
        (read) => read[Symbol.dispose](),
        () => undefined,
      ),
  };
}

async function uploadParts(upload: Upload, facts: PutFacts, signal: AbortSignal): Promise<void> {
  const { client, source, isVerified, isConditional, cleanUps } = upload;
  const whole = { ChecksumAlgorithm: "CRC32", ChecksumType: "FULL_OBJECT" } as const;
  const create = new CreateMultipartUploadCommand({ ...facts, ...(isVerified && whole) });
  const creation = new AbortController();
  const created = client.send(create, { abortSignal: creation.signal });
  const { Bucket, Key } = facts;
  const parts: CompletedPart[] = [];
  let [started, checksum] = [0, 0];
  const send = async (Body: Buffer, abortSignal: AbortSignal): Promise<void> => {
    const { UploadId } = await created;
    const PartNumber = ++started;
    checksum = crc32(Body, checksum);
    const own = isVerified && { ChecksumCRC32: encodeCrc32(crc32(Body)) };
    const part = new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body, ...own });
    const { ETag } = await client.send(part, { abortSignal });
    parts[PartNumber - 1] = { PartNumber, ETag, ...own };
  };
  try {
    const { UploadId } = await abortable(created, signal);
    await sendInParts(upload, partBytesOf(source.sizeBytes), send, signal);
    const complete = new CompleteMultipartUploadCommand({
      ...{ Bucket, Key, UploadId },
      MultipartUpload: { Parts: parts },
      ...(isConditional && { IfNoneMatch: "*" }),
      ...(isVerified && { ChecksumCRC32: encodeCrc32(checksum), ChecksumType: whole.ChecksumType }),
    });
    await client.send(complete, { abortSignal: signal });
  } catch (error) {
    // What it cannot remove, a lifecycle rule does.
    await cleanUps.run(async (limit) => {
      // The save may have ended before the server said the name of the upload.
      limit.addEventListener("abort", () => creation.abort(limit.reason));
      const { UploadId } = await created;
      const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
      await client.send(abort, { abortSignal: limit });
    }, signal);
    throw error;
  }
}

function partBytesOf(sizeBytes: number): number {
  return Math.max(minPartBytes, Math.ceil(sizeBytes / maxParts));
}

/** Base64 of four octets, as S3 writes a CRC-32. */
export function encodeCrc32(checksum: number): string {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(checksum);
  return octets.toString("base64");
}
