/**
 * The filesystem store, held to the contract of every store, and never writing outside its base
 * directory.
 */
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import { describeArtifactStore } from "./artifact-store.ts";

describeArtifactStore("filesystem", async () => {
  const around = await mkdtemp(join(tmpdir(), "str-artifacts-"));
  onTestFinished(async () => {
    const names = await readdir(around);
    await rm(around, { recursive: true });
    expect(names).toEqual(["base"]);
  });
  await mkdir(join(around, "base"));
  return createFilesystemStore({ basePath: join(around, "base") });
});
