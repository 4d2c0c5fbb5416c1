/**
 * Artifacts as objects of a bucket of Google Cloud Storage.
 */
import { ObjectStore } from "../objects/store.ts";
import type { ArtifactStore } from "../store.ts";
import type { GcsStoreConfig } from "./config.ts";
import { GcsObjects } from "./objects.ts";

/** Creates a store without access to it. The caller disposes it. */
export function createGcsStore(config: GcsStoreConfig): ArtifactStore {
  return new ObjectStore(new GcsObjects(config));
}
