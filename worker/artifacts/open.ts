/**
 * Opens the configured store, and loads only its code.
 */
import type { CacheConfig, CachedStoreParts } from "./cache/store.ts";
import type { GcsStoreConfig } from "./gcs/config.ts";
import type { S3StoreConfig } from "./s3/config.ts";
import type { ArtifactStore } from "./store.ts";

export type { CacheConfig } from "./cache/store.ts";

/** Kind and location of the store (`ARTIFACT_SERVICE_TYPE`). */
export type StoreConfig =
  /** In this process, invisible to agents: for tests and demonstrations. */
  | { readonly kind: "memory" }
  /** Files below `basePath`, which agents may mount elsewhere. */
  | { readonly kind: "filesystem"; readonly basePath: string }
  /** Objects of a bucket. */
  | ({ readonly kind: "s3" } & S3StoreConfig)
  | ({ readonly kind: "gcs" } & GcsStoreConfig);

/** Creates the store without access to it; `check` does that. The caller disposes it. */
export async function openStore(config: StoreConfig): Promise<ArtifactStore> {
  switch (config.kind) {
    case "memory": {
      const { createMemoryStore } = await import("./memory/store.ts");
      return createMemoryStore();
    }
    case "filesystem": {
      const { createFilesystemStore } = await import("./filesystem/store.ts");
      return createFilesystemStore({ basePath: config.basePath });
    }
    case "s3": {
      const { createS3Store } = await import("./s3/store.ts");
      return createS3Store(config);
    }
    case "gcs": {
      const { createGcsStore } = await import("./gcs/store.ts");
      return createGcsStore(config);
    }
  }
}

/** The same behind a cache on this machine, if one is configured. */
export async function openCachedStore(
  config: StoreConfig,
  cache: CacheConfig | undefined,
  host: Pick<CachedStoreParts, "clock" | "log">,
): Promise<ArtifactStore> {
  if (cache === undefined) return openStore(config);
  const { createCachedStore } = await import("./cache/store.ts");
  const { clock, log } = host;
  const store = await openStore(config);
  return createCachedStore({ store, identity: identityOf(config), config: cache, clock, log });
}

/** What tells one store from another; neither credentials nor how it writes. */
function identityOf(config: StoreConfig): readonly unknown[] {
  const location = { basePath: undefined, endpoint: undefined, bucket: undefined, ...config };
  return [config.kind, location.basePath, location.endpoint, location.bucket];
}
