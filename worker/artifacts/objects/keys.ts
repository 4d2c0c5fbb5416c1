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
