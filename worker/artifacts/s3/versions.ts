/**
 * Versions of an artifact, and names of artifacts, by the keys of their objects.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import { NameList, namesNotListed } from "../names.ts";
import type { ArtifactLevel } from "../scope.ts";
import { StoreError } from "../store.ts";
import { levelPrefixOf, versionIn } from "./keys.ts";
import { listPages } from "./listing.ts";

/** Ascending. Throws StoreError `too-many-versions`, and the SDK's errors. */
export async function listVersions(
  client: S3Client,
  Bucket: string,
  prefix: string,
  signal: AbortSignal,
): Promise<number[]> {
  const versions: number[] = [];
  const tooLong = (): Error =>
    new StoreError("too-many-versions", "The artifact has too many versions to list them.");
  // What lies deeper is no version, however much of it there is.
  for await (const { keys } of listPages({ client, Bucket, prefix, tooLong }, signal)) {
    for (const key of keys) {
      const version = versionIn(key, prefix);
      if (version !== undefined) versions.push(version);
    }
  }
  return versions.sort((a, b) => a - b);
}

/** The filenames at some levels, sorted. Throws StoreError `too-many-names`, the SDK's errors. */
export async function listNames(
  client: S3Client,
  Bucket: string,
  levels: readonly ArtifactLevel[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const list = new NameList();
  const tooLong = (): Error =>
    new StoreError("too-many-names", `${namesNotListed}: there are too many of them.`);
  for (const level of levels) {
    // By its length: a scope may have slashes.
    const prefix = levelPrefixOf(level);
    for await (const { prefixes } of listPages({ client, Bucket, prefix, tooLong }, signal)) {
      for (const deeper of prefixes) list.add(level, deeper.slice(prefix.length, -1));
    }
  }
  return list.sorted();
}
