/**
 * The native parts that are in the package are built of the sources beside them.
 */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Compiler,
  buildPaths,
  lastRecord,
  nativeParts,
  presentRecord,
} from "../../../scripts/native-parts.ts";

const project = join(import.meta.dirname, "../../..");
const parts = Object.entries(nativeParts).map(([name, part]) => ({ name, part }));

describe.each(parts)("the native part of $name", ({ part }) => {
  test("is what was built of its sources: else run `npm run addon`", async () => {
    expect(await presentRecord(part)).toEqual(await lastRecord(part));
  });

  test("is built into the same bytes again", { tags: "full", timeout: 300_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "built-addon-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const paths = buildPaths(part).map((path) => join(part.directory, path));
    expect(paths).toHaveLength(2 * part.builds.length);
    for (const path of paths) await mkdir(dirname(join(directory, path)), { recursive: true });
    await using compiler = await Compiler.install();
    await compiler.build(part, project, directory);
    for (const path of paths)
      expect(await readFile(join(directory, path))).toEqual(await readFile(join(project, path)));
  });
});
