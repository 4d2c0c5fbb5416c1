/**
 * Stores of Google Cloud Storage of tests, and servers and buckets for them.
 */
import { type Bucket, Storage } from "@google-cloud/storage";
import { afterAll, beforeAll, vi } from "vitest";
import { type FakeGcs, type FakeGcsOptions, startFakeGcs } from "../../harness/fakes/gcs/server.ts";
import type { GcsStoreConfig } from "../../worker/artifacts/gcs/config.ts";
import { createGcsStore } from "../../worker/artifacts/gcs/store.ts";
import type { ArtifactStore } from "../../worker/artifacts/store.ts";
import { mapConcurrently } from "../../worker/support/concurrent.ts";
import { type SeededVersion, keyOf } from "../conformance/artifacts/object-store/seeded.ts";
import { never } from "../conformance/artifacts/under-test.ts";

/** Requests of a seeding at the same time. */
const parallel = 16;

/** The SDK finds credentials in the environment. */
export function useGcsCredentials(file: string): void {
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", file);
}

/** A server for the tests of a file, whose process goes on with other files: it keeps nothing. */
export function useFakeGcs(options: FakeGcsOptions): () => FakeGcs {
  let server: FakeGcs | undefined;
  beforeAll(async () => {
    server = await startFakeGcs(options);
    useGcsCredentials(server.credentialsFile);
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    server = undefined;
  });
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

/** A bucket by the SDK's own methods: Google's, or without credentials that of an endpoint. */
export class GcsTestBucket {
  readonly #bucket: Bucket;

  constructor(name: string, apiEndpoint?: string) {
    const place = apiEndpoint === undefined ? {} : { apiEndpoint };
    this.#bucket = new Storage({ projectId: "none", ...place }).bucket(name);
  }

  async seed(versions: readonly SeededVersion[]): Promise<void> {
    await mapConcurrently(versions, parallel, never, ({ content, ...version }) =>
      this.#bucket.file(keyOf(version)).save(content, { resumable: false }),
    );
  }

  /** Removes the objects that begin so. */
  async clear(prefix: string): Promise<void> {
    await this.#bucket.deleteFiles({ prefix });
  }
}
