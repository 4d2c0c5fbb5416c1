/**
 * Configuration to store: loads the code of the one kind that is used.
 */
import type { ArtifactStore } from "./store.ts";

/** Which store, and where (`ARTIFACT_SERVICE_TYPE`). */
export type StoreConfig =
  /** Content in this process: for tests and demonstrations, since no agent can see it. */
  | { readonly kind: "memory" }
  /** Content in files below `basePath`, which agents see at a path of their own. */
  | { readonly kind: "filesystem"; readonly basePath: string };

/**
 * Makes the store. Nothing is reached yet; `check` does that. The caller owns the store and
 * disposes it.
 */
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
  }
}
