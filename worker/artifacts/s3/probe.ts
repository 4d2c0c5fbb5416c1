/**
 * Tries whether a server keeps conditions: without them, two savers could take one version.
 */
import { randomUUID } from "node:crypto";
import { DeleteObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { marksLevel } from "../scope.ts";
import { isConditionFailed, isUnsupported } from "./failures.ts";

/** Creates an object twice, and removes it. Throws the SDK's errors. */
export async function keepsConditions(
  client: S3Client,
  Bucket: string,
  abortSignal: AbortSignal,
): Promise<boolean> {
  // Beside the scopes, of which none has this name.
  const Key = `${marksLevel}/probe-${randomUUID()}`;
  const create = async (): Promise<void> => {
    const put = new PutObjectCommand({ Bucket, Key, Body: "probe", IfNoneMatch: "*" });
    await client.send(put, { abortSignal });
  };
  try {
    await create();
    await create();
    return false;
  } catch (error) {
    if (isUnsupported(error)) return false;
    if (isConditionFailed(error)) return true;
    throw error;
  } finally {
    await client.send(new DeleteObjectCommand({ Bucket, Key }), { abortSignal });
  }
}
