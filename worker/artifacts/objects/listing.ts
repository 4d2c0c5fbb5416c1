/**
 * Lists a bucket: versions of an artifact, names of artifacts, marks.
 */
import { NameList, tooManyNames } from "../names.ts";
import { artifactLevels } from "../scope.ts";
import { type ArtifactScope, StoreError } from "../store.ts";
import type { Listing, ObjectBucket, Page } from "./bucket.ts";
import { versionIn } from "./keys.ts";

/** Requests of a listing, of up to 1,000 entries each. */
const maxPages = 100;

/** Page by page. Throws `tooLong()` where it does not end, and errors of the bucket. */
export async function* listPages(
  bucket: ObjectBucket,
  listing: Omit<Listing, "from">,
  tooLong: () => Error,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  let from: string | undefined;
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await bucket.list({ ...listing, ...(from !== undefined && { from }) }, signal);
    yield page;
    if (page.next === undefined) return;
    from = page.next;
  }
  throw tooLong();
}

/** Ascending. Throws StoreError `too-many-versions`, and errors of the bucket. */
export async function listVersions(
  bucket: ObjectBucket,
  prefix: string,
  signal: AbortSignal,
): Promise<number[]> {
  const versions: number[] = [];
  // What lies deeper is no version, however much of it there is.
  for await (const { objects } of listPages(bucket, { prefix }, tooManyVersions, signal)) {
    for (const { key } of objects) {
      const version = versionIn(key, prefix);
      if (version !== undefined) versions.push(version);
    }
  }
  return versions.sort((a, b) => a - b);
}

/** Filenames of session and user, sorted. Throws `too-many-names`, and errors of the bucket. */
export async function listNames(
  bucket: ObjectBucket,
  scope: ArtifactScope,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const list = new NameList(scope);
  const tooLong = (): Error => tooManyNames(scope);
  for (const level of artifactLevels(scope)) {
    // By its length: a scope may have slashes.
    const prefix = bucket.layout.levelPrefixOf(level);
    for await (const { prefixes } of listPages(bucket, { prefix }, tooLong, signal)) {
      for (const deeper of prefixes) list.add(level, deeper.slice(prefix.length, -1));
    }
  }
  return list.sorted();
}

function tooManyVersions(): StoreError {
  return new StoreError("too-many-versions", "The artifact has too many versions to list them.");
}
