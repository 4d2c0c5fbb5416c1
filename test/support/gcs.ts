/**
 * Stores of Google Cloud Storage of tests, and servers for them.
 */
import { afterAll, beforeAll, vi } from "vitest";
import { type FakeGcs, type FakeGcsOptions, startFakeGcs } from "../../harness/fakes/gcs/server.ts";
import type { GcsStoreConfig } from "../../worker/artifacts/gcs/config.ts";
import { createGcsStore } from "../../worker/artifacts/gcs/store.ts";
import type { ArtifactStore } from "../../worker/artifacts/store.ts";

/** The SDK finds credentials in the environment. */
export function useGcsCredentials(file: string): void {
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", file);
}

/** Starts a server for the tests of a file. */
export function useFakeGcs(options: FakeGcsOptions): () => FakeGcs {
  let server: FakeGcs | undefined;
  beforeAll(async () => {
    server = await startFakeGcs(options);
    useGcsCredentials(server.credentialsFile);
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  return () => server!;
}

/** A store in a bucket of a server. */
export function gcsStore(
  endpoint: string | undefined,
  bucket: string,
  changes: Partial<GcsStoreConfig> = {},
): ArtifactStore {
  return createGcsStore({
    bucket,
    endpoint,
    isAnonymous: false,
    kmsKey: undefined,
    storageClass: undefined,
    ...changes,
  });
}
