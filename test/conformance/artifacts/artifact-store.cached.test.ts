/**
 * The S3 store and the filesystem store behind a cache, held to the contract of every store.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import { type TestCache, newCache } from "../../support/cached-store.ts";
import { s3Store } from "../../support/s3.ts";
import { useFakeS3Process } from "../../support/s3-process.ts";
import { describeArtifactStore } from "./artifact-store.ts";

const endpoint = useFakeS3Process();

/** A cache that must not give up. */
async function workingCache(): Promise<TestCache> {
  const cache = await newCache();
  onTestFinished(() => expect(cache.events).toEqual([]));
  return cache;
}

describeArtifactStore("s3 behind a cache", async () =>
  (await workingCache()).before(s3Store(endpoint(), "artifacts")),
);

describeArtifactStore("filesystem behind a cache", async () => {
  const cache = await workingCache();
  const basePath = join(cache.directory, "../base");
  await mkdir(basePath);
  return cache.before(createFilesystemStore({ basePath }));
});
