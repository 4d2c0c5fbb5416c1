/**
 * Metadata of objects that only this project writes: the save that made an object, and a MIME type
 * that no header can carry.
 */
import type { ArtifactMetadata } from "../store.ts";

const [saveKey, mimeTypeKey] = ["str_save", "str_mime_type"];

type Metadata = Readonly<Record<string, unknown>>;

/** By it a request that was repeated knows its object again. */
export function saveMetadata(saveId: string): Record<string, string> {
  return { [saveKey]: saveId };
}

/** Whether the metadata of an object are those of a save. */
export function isOfSave(metadata: Metadata | undefined, saveId: string): boolean {
  return valueOf(metadata, saveKey) === saveId;
}

/** What a header may have as it is. */
const plainText = /^[\x20-\x7e]+$/;

const unknownMimeType = "application/octet-stream";

/** The header of objects whose metadata have the MIME type. Agents save no object with it. */
export const placeholderType = "binary/octet-stream";

/** A MIME type as a header, where it can be one. */
export function contentTypeOf(mimeType: string): string {
  return plainText.test(mimeType) ? mimeType : placeholderType;
}

/** Metadata of an object whose header has no room for its MIME type. */
export function mimeTypeMetadata(mimeType: string): Record<string, string> {
  return plainText.test(mimeType) ? {} : { [mimeTypeKey]: encodeURIComponent(mimeType) };
}

/** From header and metadata of an object. */
export function decodeMimeType(
  contentType: string | undefined,
  metadata: Metadata,
): ArtifactMetadata {
  const encoded = valueOf(metadata, mimeTypeKey);
  const mimeType = typeof encoded === "string" ? decodeURIComponent(encoded) : contentType;
  return { mimeType: mimeType ?? unknownMimeType };
}

/** Swift makes dashes of the underscores of objects that were uploaded in parts. */
function valueOf(metadata: Metadata | undefined, key: string): unknown {
  return metadata?.[key] ?? metadata?.[key.replaceAll("_", "-")];
}
