/**
 * Facts about objects: what agents write and read, and what only this store does.
 */
import type { FileMetadata } from "@google-cloud/storage";
import { decodeMimeType } from "../objects/content-type.ts";
import { StoreError } from "../store.ts";
import type { ArtifactFacts } from "../store.ts";
import { generationOf } from "./bucket.ts";

/** Keys by which agents save the address of content instead of the content. */
const addressKeys = ["adkFileUri", "file_uri"];

/** Facts of a version. Throws StoreError where the object has only an address of its content. */
export function factsOf(object: FileMetadata, doing: string): Omit<ArtifactFacts, "version"> {
  const { size, contentType, metadata = {} } = object;
  if (addressKeys.some((key) => typeof metadata[key] === "string")) {
    const why = "an agent saved an address there, and no content";
    throw new StoreError("unavailable", `${doing}: ${why}.`);
  }
  return {
    sizeBytes: Number(size),
    etag: generationOf(object),
    metadata: decodeMimeType(contentType, metadata),
  };
}
