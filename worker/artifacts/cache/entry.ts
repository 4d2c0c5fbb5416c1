/**
 * Names of cache entries: digests, so that no name of one caller leads to an entry of another.
 */
import { createHash } from "node:crypto";
import type { ArtifactKey } from "../scope.ts";

/** What an entry is for. */
export interface Entry {
  /** Digest of store, scope, user, session, name and version. */
  readonly key: string;
  /** Digest of the etag: other content may take the number of a deleted version. */
  readonly etag: string;
  readonly sizeBytes: number;
}

/** Characters of the etag's digest: 128 bits. */
const etagLength = 32;

/** @param store what tells the store from others, as JSON has it */
export function entryKey(store: readonly unknown[], key: ArtifactKey, version: number): string {
  const { root, userId, sessionOrUser, name } = key;
  return digest(JSON.stringify([store, root, userId, sessionOrUser, name, version]));
}

export function etagDigest(etag: string): string {
  return digest(etag).slice(0, etagLength);
}

/** Begins the names of an entry's files, which end with the checksum of the content. */
export function entryPrefix({ key, etag }: Pick<Entry, "key" | "etag">): string {
  return `${key}.${etag}.`;
}

/** @param crc CRC-32 of the content */
export function entryName(entry: Entry, crc: number): string {
  return entryPrefix(entry) + crc.toString(16).padStart(8, "0");
}

/** CRC-32 of the content of an entry's file. */
export function crcOf(name: string): number {
  return Number.parseInt(name.slice(name.lastIndexOf(".") + 1), 16);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
