/**
 * Keys of objects, as agents write and read them:
 * `{scope}/{user}/{session or "user"}/{name}/{version}`.
 */
import type { ArtifactKey, ArtifactLevel } from "../scope.ts";
import { StoreError } from "../store.ts";

/** Bytes of UTF-8 of a key: Amazon S3 User Guide, "Naming Amazon S3 objects". */
const maxKeyBytes = 1024;

/** Digits of a version, so that a full key has a bound. */
const maxVersionDigits = 16;

/** All versions of an artifact start with it. Throws StoreError `invalid-name` when it is long. */
export function prefixOf(key: ArtifactKey): string {
  const prefix = `${levelPrefixOf(key)}${key.name}/`;
  if (Buffer.byteLength(prefix) + maxVersionDigits > maxKeyBytes) {
    const why = `with scope, user and session it is longer than ${maxKeyBytes} bytes`;
    throw new StoreError("invalid-name", `The filename is refused: ${why}.`);
  }
  return prefix;
}

/** All artifacts of a session, or of a user, start with it. */
export function levelPrefixOf({ root, userId, sessionOrUser }: ArtifactLevel): string {
  // Agents write below the scope without its outer slashes.
  const scope = root.replace(/^\/+|\/+$/g, "");
  return `${scope}/${userId}/${sessionOrUser}/`;
}

/** The version that a key with this prefix is; undefined for other objects. */
export function versionIn(key: string, prefix: string): number | undefined {
  const digits = key.startsWith(prefix) ? key.slice(prefix.length) : "";
  const version = Number(digits);
  const isCanonical = /^\d+$/.test(digits) && String(version) === digits;
  return isCanonical && Number.isSafeInteger(version) ? version : undefined;
}
