/**
 * The filesystem store behind a cache, held to the contract of every store. Ordinary runs
 * have the cache's own tests.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "vitest";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import { workingCache } from "../../support/cached-store.ts";
import { describeArtifactStore } from "./artifact-store.ts";

describe("behind a cache", { tags: "full" }, () => {
  describeArtifactStore("filesystem behind a cache", async () => {
    const cache = await workingCache();
    const basePath = join(cache.directory, "../base");
    await mkdir(basePath);
    return cache.before(createFilesystemStore({ basePath }));
  });
});
