/**
 * Tries whether a server keeps conditions: without them, two savers could take one version.
 */
import { randomUUID } from "node:crypto";
import { DeleteObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { marksLevel } from "../scope.ts";
import { StoreError } from "../store.ts";
import { isConditionFailed } from "./failures.ts";

/**
 * Creates an object twice, and removes it. Throws StoreError where the second attempt succeeds, and
 * the SDK's errors.
 */
export async function requireConditions(
  client: S3Client,
  Bucket: string,
  abortSignal: AbortSignal,
): Promise<void> {
  // Beside the scopes, of which none has this name.
  const Key = `${marksLevel}/probe-${randomUUID()}`;
  const create = async (): Promise<void> => {
    const put = new PutObjectCommand({ Bucket, Key, Body: "probe", IfNoneMatch: "*" });
    await client.send(put, { abortSignal });
  };
  await create();
  try {
    await create();
  } catch (error) {
    if (isConditionFailed(error)) return;
    throw error;
  } finally {
    await client.send(new DeleteObjectCommand({ Bucket, Key }), { abortSignal });
  }
  throw new StoreError(
    "unavailable",
    "The artifact store cannot be used: it ignores the condition If-None-Match.",
  );
}
