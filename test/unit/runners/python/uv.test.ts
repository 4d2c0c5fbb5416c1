/**
 * Interpreters that uv manages, where uv finds none.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findByUv } from "../../../../worker/runners/python/uv.ts";

async function searchPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "str-uv-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

describe("a Python of uv", () => {
  test.each([false, true])("needs uv itself (downloads: %s)", async (downloads) => {
    const environment = { PATH: await searchPath() };
    await expect(findByUv("3.13", { environment, downloads })).rejects.toThrow(
      "uv is not on the worker's PATH",
    );
  });

  test("is missing where uv does not find it", async () => {
    const PATH = await searchPath();
    await writeFile(join(PATH, "uv"), "#!/bin/sh\nexit 2\n");
    await chmod(join(PATH, "uv"), 0o755);
    await expect(findByUv("3.13", { environment: { PATH }, downloads: false })).rejects.toThrow(
      "uv has no Python 3.13; uv python install 3.13 gets it",
    );
  });
});
