/**
 * The `.meta` file of a version, byte for byte as the original writes it.
 */
import { parseJson, isJsonObject } from "../../support/json/json.ts";
import { defaultMimeType } from "../mime.ts";
import type { ArtifactMetadata } from "../store.ts";

/** Largest `.meta` file that is written or read: a MIME type and some room. */
export const maxMetaBytes = 64 * 1024;

/**
 * `{"mime_type": "text/csv"}` as Python's `json.dump` has it: a space after the colon, all but
 * ASCII escaped, no newline.
 */
export function encodeMeta(metadata: ArtifactMetadata): string {
  const text = JSON.stringify(metadata.mimeType).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `{"mime_type": ${text}}`;
}

/**
 * Reads what any peer wrote. Throws JsonError for what is not JSON; a missing or null MIME type is
 * the default one.
 */
export function decodeMeta(bytes: Uint8Array): ArtifactMetadata {
  const meta = parseJson(bytes);
  const mimeType = isJsonObject(meta) ? meta["mime_type"] : undefined;
  return { mimeType: typeof mimeType === "string" ? mimeType : defaultMimeType };
}
