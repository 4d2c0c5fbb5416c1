/**
 * The native parts of templates that are in the package are built of the sources beside them.
 */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Compiler,
  buildPaths,
  lastRecord,
  presentRecord,
  runnersDirectory,
} from "../../../scripts/fork-addon.ts";

describe("the native part of templates", () => {
  test("is what was built of its sources: else run `npm run addon`", async () => {
    expect(await presentRecord()).toEqual(await lastRecord());
  });

  test("is built into the same bytes again", { tags: "full", timeout: 300_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "built-addon-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    for (const path of buildPaths) await mkdir(dirname(join(directory, path)), { recursive: true });
    await using compiler = await Compiler.install();
    await compiler.build(runnersDirectory, directory);
    expect(buildPaths).toHaveLength(4);
    for (const path of buildPaths)
      expect(await readFile(join(directory, path))).toEqual(
        await readFile(join(runnersDirectory, path)),
      );
  });
});
