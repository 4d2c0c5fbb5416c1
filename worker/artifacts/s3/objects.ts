/**
 * Opens objects of a bucket, and reads the facts about them.
 */
import {
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { ArtifactFacts, OpenedArtifact } from "../store.ts";
import type { S3StoreConfig } from "./config.ts";
import { unlessMissing } from "./failures.ts";
import { decodeMetadata } from "./metadata.ts";
import { readObject } from "./reading.ts";

/** A bucket, and how it verifies content. The owner keeps the client. */
export interface Bucket extends Pick<S3StoreConfig, "checksums"> {
  readonly client: S3Client;
  readonly Bucket: string;
}

/** Undefined without the object. Throws the SDK's errors. */
export async function headObject(
  { client, Bucket }: Bucket,
  Key: string,
  abortSignal: AbortSignal,
): Promise<HeadObjectCommandOutput | undefined> {
  const head = new HeadObjectCommand({ Bucket, Key });
  return unlessMissing(() => client.send(head, { abortSignal }));
}

/** Undefined without the object. Throws the SDK's errors; those of the body begin with `doing`. */
export async function openObject(
  { client, Bucket, checksums }: Bucket,
  Key: string,
  doing: string,
  abortSignal: AbortSignal,
): Promise<Omit<OpenedArtifact, "version"> | undefined> {
  const isVerified = checksums === "supported";
  const get = new GetObjectCommand({ Bucket, Key, ...(isVerified && { ChecksumMode: "ENABLED" }) });
  const response = await unlessMissing(() => client.send(get, { abortSignal }));
  if (response === undefined) return undefined;
  const facts = factsOf(response);
  const { sizeBytes } = facts;
  return { ...facts, body: readObject({ client, Bucket, Key, sizeBytes, response, doing }) };
}

/** Facts from the headers of a response. */
export function factsOf(
  response: Pick<HeadObjectCommandOutput, "ContentLength" | "ContentType" | "ETag" | "Metadata">,
): Omit<ArtifactFacts, "version"> {
  const { ContentLength = 0, ETag = "" } = response;
  return { sizeBytes: ContentLength, etag: ETag, metadata: decodeMetadata(response) };
}
