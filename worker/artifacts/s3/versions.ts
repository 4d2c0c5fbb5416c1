/**
 * Versions of an artifact, and names of artifacts, by the keys of their objects.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import { NameList, tooManyNames } from "../names.ts";
import { tooManyVersions, versionsIn } from "../objects/keys.ts";
import type { ArtifactLevel } from "../scope.ts";
import { levelPrefixOf } from "./keys.ts";
import { listPages } from "./listing.ts";

/** Ascending. Throws StoreError `too-many-versions`, and the SDK's errors. */
export async function listVersions(
  client: S3Client,
  Bucket: string,
  prefix: string,
  signal: AbortSignal,
): Promise<number[]> {
  const listing = { client, Bucket, prefix, tooLong: tooManyVersions };
  return versionsIn(listPages(listing, signal), prefix);
}

/** The filenames at some levels, sorted. Throws StoreError `too-many-names`, the SDK's errors. */
export async function listNames(
  client: S3Client,
  Bucket: string,
  levels: readonly ArtifactLevel[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const list = new NameList();
  for (const level of levels) {
    // By its length: a scope may have slashes.
    const prefix = levelPrefixOf(level);
    const listing = { client, Bucket, prefix, tooLong: tooManyNames };
    for await (const { prefixes } of listPages(listing, signal)) {
      for (const deeper of prefixes) list.add(level, deeper.slice(prefix.length, -1));
    }
  }
  return list.sorted();
}
