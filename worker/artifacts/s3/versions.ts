/**
 * Versions of an artifact, and names of artifacts, by the keys of their objects.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import { NameList, tooManyNames } from "../names.ts";
import { tooManyVersions, versionsIn } from "../objects/keys.ts";
import { artifactLevels } from "../scope.ts";
import type { ArtifactScope } from "../store.ts";
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

/** Filenames of session and user, sorted. Throws StoreError `too-many-names`, the SDK's errors. */
export async function listNames(
  client: S3Client,
  Bucket: string,
  scope: ArtifactScope,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const list = new NameList(scope);
  const tooLong = (): Error => tooManyNames(scope);
  for (const level of artifactLevels(scope)) {
    // By its length: a scope may have slashes.
    const prefix = levelPrefixOf(level);
    const listing = { client, Bucket, prefix, tooLong };
    for await (const { prefixes } of listPages(listing, signal)) {
      for (const deeper of prefixes) list.add(level, deeper.slice(prefix.length, -1));
    }
  }
  return list.sorted();
}
