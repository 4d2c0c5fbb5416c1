/**
 * Tries whether a server keeps conditions: without them, two savers could take one version.
 */
import { randomUUID } from "node:crypto";
import { DeleteObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { marksLevel } from "../scope.ts";
import { isConditionFailed, isConflict, isUnsupported } from "./failures.ts";

/** Creators of one object at once: some servers refuse only those that come after another. */
const creators = 4;

/** The ETag of no object. */
const noEtag = `"${"0".repeat(32)}"`;

/** Creates one object several times at once, replaces it, and removes it. Throws SDK errors. */
export async function keepsConditions(
  client: S3Client,
  Bucket: string,
  abortSignal: AbortSignal,
): Promise<boolean> {
  // Beside the scopes, of which none has this name.
  const Key = `${marksLevel}/probe-${randomUUID()}`;
  const put = (condition: { readonly IfMatch?: string; readonly IfNoneMatch?: "*" }) =>
    client.send(new PutObjectCommand({ Bucket, Key, Body: "probe", ...condition }), {
      abortSignal,
    });
  const tryPut = async (condition: Parameters<typeof put>[0]) => {
    try {
      await put(condition);
      return "done";
    } catch (error) {
      if (isUnsupported(error)) return "unsupported";
      if (isConditionFailed(error) || isConflict(error)) return "refused";
      throw error;
    }
  };
  const create = () => tryPut({ IfNoneMatch: "*" });
  try {
    const created = await Promise.all(Array.from({ length: creators }, create));
    // It may be something else that it does not know, which every save needs.
    if (created.includes("unsupported")) await put({});
    if (created.filter((outcome) => outcome !== "refused").length > 1) return false;
    return (await tryPut({ IfMatch: noEtag })) === "refused";
  } finally {
    await client.send(new DeleteObjectCommand({ Bucket, Key }), { abortSignal });
  }
}
