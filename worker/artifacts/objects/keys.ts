/**
 * Keys of objects: a prefix for each artifact, followed by the version.
 */
import { StoreError } from "../store.ts";

/**
 * Bytes of UTF-8 of a key: Amazon S3 User Guide, "Naming Amazon S3 objects"; Cloud Storage, "About
 * Cloud Storage objects".
 */
const maxKeyBytes = 1024;

/** Digits of a version, so that a full key has a bound. */
const maxVersionDigits = 16;

/** The prefix. Throws StoreError `invalid-name` when it leaves no room for a version. */
export function checkedPrefix(prefix: string): string {
  if (Buffer.byteLength(prefix) + maxVersionDigits > maxKeyBytes) {
    const why = `with scope, user and session it is longer than ${maxKeyBytes} bytes`;
    throw new StoreError("invalid-name", `The filename is refused: ${why}.`);
  }
  return prefix;
}

/** The version that a key with this prefix is; undefined for other objects. */
export function versionIn(key: string, prefix: string): number | undefined {
  const digits = key.startsWith(prefix) ? key.slice(prefix.length) : "";
  const version = Number(digits);
  const isCanonical = /^\d+$/.test(digits) && String(version) === digits;
  return isCanonical && Number.isSafeInteger(version) ? version : undefined;
}

/** The versions among keys with this prefix, ascending. Throws what listing them throws. */
export async function versionsIn(
  pages: AsyncIterable<{ readonly keys: readonly string[] }>,
  prefix: string,
): Promise<number[]> {
  const versions: number[] = [];
  // What lies deeper is no version, however much of it there is.
  for await (const { keys } of pages) {
    for (const key of keys) {
      const version = versionIn(key, prefix);
      if (version !== undefined) versions.push(version);
    }
  }
  return versions.sort((a, b) => a - b);
}

/** Requests of a listing, of up to 1,000 entries each. */
export const maxPages = 100;

/** The error of a listing of versions that does not end. */
export function tooManyVersions(): StoreError {
  return new StoreError("too-many-versions", "The artifact has too many versions to list them.");
}
