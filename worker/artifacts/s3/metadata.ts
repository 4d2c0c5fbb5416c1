/**
 * Metadata of objects: what agents write and read, and what only this store does.
 */
import type { HeadObjectCommandOutput } from "@aws-sdk/client-s3";
import { decodeMimeType, mimeTypeMetadata } from "../objects/content-type.ts";
import { saveMetadata } from "../objects/saves.ts";
import { type ArtifactKey, filenameOf } from "../scope.ts";
import type { ArtifactMetadata } from "../store.ts";

/** Characters of a name: all metadata of an object has 2 kB, and a value 256 bytes in Swift. */
const maxNameChars = 256;

/** What is read of an object. */
type ObjectHead = Pick<HeadObjectCommandOutput, "ContentType" | "Metadata">;

/** A version that is being saved. */
export interface SavingVersion {
  readonly key: ArtifactKey;
  /** The session that saves it, also where it belongs to the user. */
  readonly sessionId: string;
  readonly version: number;
  /** Distinguishes the objects of saves; see `objects/saves.ts`. */
  readonly save: string;
}

export function encodeMetadata(
  { key, sessionId, version, save }: SavingVersion,
  { mimeType }: ArtifactMetadata,
): Record<string, string> {
  return {
    original_filename: escaped(filenameOf(key)),
    user_id: escaped(key.userId),
    session_id: escaped(sessionId),
    version: String(version),
    ...saveMetadata(save),
    ...mimeTypeMetadata(mimeType),
  };
}

export function decodeMetadata({ ContentType, Metadata = {} }: ObjectHead): ArtifactMetadata {
  return decodeMimeType(ContentType, Metadata);
}

/** ASCII by Python's `backslashreplace`, as agents write it; long names are cut off. */
function escaped(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]/gu, (character) => {
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
    return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
  });
  return ascii.slice(0, maxNameChars);
}
