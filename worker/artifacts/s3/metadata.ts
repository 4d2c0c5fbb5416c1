/**
 * Metadata of objects: what agents write and read, and what only this store does.
 */
import type { HeadObjectCommandOutput } from "@aws-sdk/client-s3";
import { type ArtifactKey, filenameOf } from "../scope.ts";
import type { ArtifactMetadata } from "../store.ts";

/** Our own: which save made the object, and a MIME type that no header can carry. */
const own = { save: "str_save", mimeType: "str_mime_type" } as const;

/** Characters of a name, since all metadata of an object has 2 kB. */
const maxNameChars = 512;

/** What a header may have as it is. */
const plainText = /^[\x20-\x7e]+$/;

const unknownMimeType = "application/octet-stream";

/** What is read of an object. */
type ObjectHead = Pick<HeadObjectCommandOutput, "ContentType" | "Metadata">;

/** A MIME type as a header, where it can be one. */
export function contentTypeOf(mimeType: string): string {
  return plainText.test(mimeType) ? mimeType : unknownMimeType;
}

/** A version that is being saved. */
export interface SavingVersion {
  readonly key: ArtifactKey;
  /** The session that saves it, also where it belongs to the user. */
  readonly sessionId: string;
  readonly version: number;
  /** Distinguishes the objects of saves; see {@link isOfSave}. */
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
    ...(!plainText.test(mimeType) && { [own.mimeType]: encodeURIComponent(mimeType) }),
  };
}

export function decodeMetadata({ ContentType, Metadata = {} }: ObjectHead): ArtifactMetadata {
  const encoded = Metadata[own.mimeType];
  const mimeType = encoded === undefined ? ContentType : decodeURIComponent(encoded);
  return { mimeType: mimeType ?? unknownMimeType };
}

/** Metadata by which a save knows its object again. */
export function saveMetadata(save: string): Record<string, string> {
  return { [own.save]: save };
}

/** Whether an object is the one that a save made. */
export function isOfSave({ Metadata }: ObjectHead, save: string): boolean {
  return Metadata?.[own.save] === save;
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
