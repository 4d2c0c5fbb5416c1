/**
 * Marks each object with the save that made it: a request that was repeated knows its object again.
 */
import { ownMetadata } from "./own-metadata.ts";

const ownKey = "str_save";

/** Metadata of the object of a save. */
export function saveMetadata(save: string): Record<string, string> {
  return { [ownKey]: save };
}

/** Whether the metadata of an object are those of a save. */
export function isOfSave(
  metadata: Readonly<Record<string, unknown>> | undefined,
  save: string,
): boolean {
  return ownMetadata(metadata, ownKey) === save;
}
