/**
 * Lists names of objects, page by page.
 */
import type { FileMetadata } from "@google-cloud/storage";
import { maxPages } from "../objects/keys.ts";
import type { GcsBucket } from "./bucket.ts";

/** A prefix of a bucket. */
export interface Listing {
  readonly bucket: GcsBucket;
  readonly prefix: string;
  /** Facts of each object. */
  readonly fields: readonly (keyof FileMetadata)[];
  /** Ends keys at the next one after the prefix. */
  readonly delimiter?: string;
  /** The error of a listing that does not end. */
  readonly tooLong: () => Error;
}

/** Objects at the prefix, and deeper prefixes, which end with the delimiter. */
export interface Page {
  readonly objects: readonly FileMetadata[];
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
  /** Epoch milliseconds by the server's clock. */
  readonly nowMs: number;
}

/** Throws GcsError. */
export async function* listPages(
  { bucket, prefix, fields, delimiter, tooLong }: Listing,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  let pageToken: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const { data, headers } = await bucket.list(
      {
        prefix,
        fields: `items(${fields.join()}),prefixes,nextPageToken`,
        ...(delimiter !== undefined && { delimiter }),
        ...(pageToken !== undefined && { pageToken }),
      },
      signal,
    );
    const { items = [], prefixes = [], nextPageToken } = data;
    const keys = items.map(({ name = "" }) => name);
    yield { objects: items, keys, prefixes, nowMs: Date.parse(headers.get("date") ?? "") };
    if (nextPageToken === undefined) return;
    pageToken = nextPageToken;
  }
  throw tooLong();
}
