/**
 * Versions of an artifact, and names of artifacts, by the names of their objects.
 */
import { NameList, tooManyNames } from "../names.ts";
import { tooManyVersions, versionsIn } from "../objects/keys.ts";
import { artifactLevels } from "../scope.ts";
import type { ArtifactScope } from "../store.ts";
import type { GcsBucket } from "./bucket.ts";
import { levelPrefixOf } from "./keys.ts";
import { listPages } from "./listing.ts";

const byName = { fields: ["name"], delimiter: "/" } as const;

/** Ascending. Throws StoreError `too-many-versions`, and GcsError. */
export function listVersions(
  bucket: GcsBucket,
  prefix: string,
  signal: AbortSignal,
): Promise<number[]> {
  const listing = { ...byName, bucket, prefix, tooLong: tooManyVersions };
  return versionsIn(listPages(listing, signal), prefix);
}

/** Filenames of session and user, sorted. Throws StoreError `too-many-names`, and GcsError. */
export async function listNames(
  bucket: GcsBucket,
  scope: ArtifactScope,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const list = new NameList(scope);
  const tooLong = (): Error => tooManyNames(scope);
  for (const level of artifactLevels(scope)) {
    // By its length: a scope may have slashes.
    const prefix = levelPrefixOf(level);
    const listing = { ...byName, bucket, prefix, tooLong };
    for await (const { prefixes } of listPages(listing, signal)) {
      for (const deeper of prefixes) list.add(level, deeper.slice(prefix.length, -1));
    }
  }
  return list.sorted();
}
