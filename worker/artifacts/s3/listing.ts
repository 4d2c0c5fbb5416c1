/**
 * Lists a prefix to the next slash, page by page.
 */
import { ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { maxPages } from "../objects/keys.ts";

/** A prefix of a bucket. */
export interface Listing {
  readonly client: S3Client;
  readonly Bucket: string;
  readonly prefix: string;
  /** The error of a listing that does not end. */
  readonly tooLong: () => Error;
}

/** Keys of objects at the prefix, and deeper prefixes, which end with a slash. */
export interface Page {
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
}

/** Throws the SDK's errors. */
export async function* listPages(
  { client, Bucket, prefix, tooLong }: Listing,
  abortSignal: AbortSignal,
): AsyncGenerator<Page> {
  let ContinuationToken: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const list = new ListObjectsV2Command({
      Bucket,
      Prefix: prefix,
      Delimiter: "/",
      // Names may have characters that XML has not.
      EncodingType: "url",
      ...(ContinuationToken !== undefined && { ContinuationToken }),
    });
    const output = await client.send(list, { abortSignal });
    const { Contents = [], CommonPrefixes = [], NextContinuationToken } = output;
    // Some servers ignore the wish, and say so.
    const shown = output.EncodingType === "url" ? decoded : (key: string) => key;
    yield {
      keys: Contents.map(({ Key = "" }) => shown(Key)),
      prefixes: CommonPrefixes.map(({ Prefix = "" }) => shown(Prefix)),
    };
    if (NextContinuationToken === undefined) return;
    ContinuationToken = NextContinuationToken;
  }
  throw tooLong();
}

/** Keys are encoded as in forms. */
function decoded(key: string): string {
  return decodeURIComponent(key.replaceAll("+", " "));
}
