/**
 * MIME types of objects as headers. One that no header can carry is kept in the metadata.
 */
import type { ArtifactMetadata } from "../store.ts";
import { ownMetadata } from "./own-metadata.ts";

const ownKey = "str_mime_type";

/** What a header may have as it is. */
const plainText = /^[\x20-\x7e]+$/;

const unknownMimeType = "application/octet-stream";

/** The header of objects whose metadata have the MIME type. Agents save their objects without it. */
export const placeholderType = "binary/octet-stream";

/** A MIME type as a header, where it can be one. */
export function contentTypeOf(mimeType: string): string {
  return plainText.test(mimeType) ? mimeType : placeholderType;
}

/** Metadata of an object whose header has no room for its MIME type. */
export function mimeTypeMetadata(mimeType: string): Record<string, string> {
  return plainText.test(mimeType) ? {} : { [ownKey]: encodeURIComponent(mimeType) };
}

/** From header and metadata of an object. */
export function decodeMimeType(
  contentType: string | undefined,
  metadata: Readonly<Record<string, unknown>>,
): ArtifactMetadata {
  const encoded = ownMetadata(metadata, ownKey);
  const mimeType = typeof encoded === "string" ? decodeURIComponent(encoded) : contentType;
  return { mimeType: mimeType ?? unknownMimeType };
}
