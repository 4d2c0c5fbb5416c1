/**
 * The `.meta` file of a version, byte for byte as the original writes it.
 */
import { parseJson, isJsonObject } from "../../support/json/json.ts";
import { defaultMimeType } from "../mime.ts";
import type { ArtifactMetadata } from "../store.ts";

/** Largest `.meta` file in bytes: a MIME type needs far less. */
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

/** Decodes any peer's metadata, with a default MIME type. Throws JsonError for no JSON. */
export function decodeMeta(bytes: Uint8Array): ArtifactMetadata {
  const meta = parseJson(bytes);
  const mimeType = isJsonObject(meta) ? meta["mime_type"] : undefined;
  return { mimeType: typeof mimeType === "string" ? mimeType : defaultMimeType };
}
