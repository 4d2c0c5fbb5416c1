/**
 * Versions of an artifact, by the keys of their objects.
 */
import { ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { StoreError } from "../store.ts";
import { versionIn } from "./keys.ts";

/** Requests of a listing, of up to 1,000 keys each. */
const maxPages = 100;

/** Ascending. Throws StoreError `too-many-versions`, and the SDK's errors. */
export async function listVersions(
  client: S3Client,
  Bucket: string,
  prefix: string,
  abortSignal: AbortSignal,
): Promise<number[]> {
  const versions: number[] = [];
  let ContinuationToken: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const list = new ListObjectsV2Command({
      Bucket,
      Prefix: prefix,
      // What lies deeper is no version, however much of it there is.
      Delimiter: "/",
      // Names may have characters that XML has not.
      EncodingType: "url",
      ...(ContinuationToken !== undefined && { ContinuationToken }),
    });
    const { Contents = [], NextContinuationToken } = await client.send(list, { abortSignal });
    for (const { Key = "" } of Contents) {
      const version = versionIn(decoded(Key), prefix);
      if (version !== undefined) versions.push(version);
    }
    if (NextContinuationToken === undefined) return versions.sort((a, b) => a - b);
    ContinuationToken = NextContinuationToken;
  }
  throw new StoreError("too-many-versions", "The artifact has too many versions to list them.");
}

/** Keys are encoded as in forms. */
function decoded(key: string): string {
  return decodeURIComponent(key.replaceAll("+", " "));
}
