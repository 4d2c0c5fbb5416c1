/**
 * The weaknesses that the full tests plant: each text that they replace is there.
 */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { weaknesses } from "../../full/doctor/weaknesses.ts";

test("each text that a planted weakness replaces stands once in its file", async () => {
  const edits = weaknesses.flatMap((weakness) => weakness.edits);
  const found = edits.map(async ({ file, from }) => {
    const text = await readFile(new URL(`../../../${file}`, import.meta.url), "utf8");
    return { file, from, places: text.split(from).length - 1 };
  });
  const missed = (await Promise.all(found)).filter(({ places }) => places !== 1);
  expect(edits.length).toBeGreaterThan(0);
  expect(missed).toEqual([]);
});
