/**
 * S3 stores of tests, and servers for them.
 */
import { afterAll, beforeAll, vi } from "vitest";
import { type FakeS3, type FakeS3Options, startFakeS3 } from "../../harness/fakes/s3/server.ts";
import type { S3StoreConfig } from "../../worker/artifacts/s3/config.ts";
import { createS3Store } from "../../worker/artifacts/s3/store.ts";
import type { ArtifactStore } from "../../worker/artifacts/store.ts";

/** The SDK finds credentials in the environment. */
export function useCredentials(accessKeyId: string, secretAccessKey: string): void {
  vi.stubEnv("AWS_ACCESS_KEY_ID", accessKeyId);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", secretAccessKey);
}

/** A server for the tests of a file, whose process goes on with other files: it keeps nothing. */
export function useFakeS3(options: FakeS3Options): () => FakeS3 {
  let server: FakeS3 | undefined;
  beforeAll(async () => {
    server = await startFakeS3(options);
    useCredentials(server.accessKeyId, server.secretAccessKey);
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    server = undefined;
  });
  return () => server!;
}

/** A store in a bucket of a server. */
export function s3Store(
  endpoint: string,
  bucket: string,
  changes: Partial<S3StoreConfig> = {},
): ArtifactStore {
  return s3StoreOf({ bucket, endpoint, ...changes });
}

/** A store with the settings that differ from those of most tests. */
export function s3StoreOf(
  changes: Partial<S3StoreConfig> & Pick<S3StoreConfig, "bucket">,
): ArtifactStore {
  return createS3Store({
    region: "us-east-1",
    endpoint: undefined,
    isPathStyle: true,
    checksums: "supported",
    encryption: undefined,
    kmsKeyId: undefined,
    storageClass: undefined,
    ...changes,
  });
}
