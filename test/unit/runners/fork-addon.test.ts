/**
 * The addon that is in the package is built of the sources beside it.
 */
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  addonDirectory,
  buildAddon,
  lastRecord,
  presentRecord,
} from "../../../scripts/fork-addon.ts";

describe("the addon that forks Node", () => {
  test("is what was built of its sources: else run `npm run addon`", async () => {
    expect(await presentRecord()).toEqual(await lastRecord());
  });

  test("is built into the same bytes again", { tags: "full", timeout: 300_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "built-addon-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await buildAddon(directory);
    const names = await readdir(directory);
    expect(names.toSorted()).toEqual(["arm64.node", "x64.node"]);
    for (const name of names)
      expect(await readFile(join(directory, name))).toEqual(
        await readFile(join(addonDirectory, name)),
      );
  });
});
