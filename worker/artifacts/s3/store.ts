/**
 * Artifacts as objects of an S3 bucket.
 */
import { ObjectStore } from "../objects/store.ts";
import type { ArtifactStore } from "../store.ts";
import type { S3StoreConfig } from "./config.ts";
import { S3Objects } from "./objects.ts";

/** Creates a store without access to it. The caller disposes it. */
export function createS3Store(config: S3StoreConfig): ArtifactStore {
  return new ObjectStore(new S3Objects(config));
}
