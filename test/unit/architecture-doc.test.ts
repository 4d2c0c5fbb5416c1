/**
 * ARCHITECTURE.md and docs/extend.md show the code as it stands: folders at their ranks, and files
 * that are there.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folderRanks, topRank } from "../architecture/import-rules.ts";

const root = join(import.meta.dirname, "../..");
/** More than that nobody reads. */
const maxBytes = 9_216;

/** A page without its pictures. */
function read(page: string): string {
  return readFileSync(join(root, page), "utf8").replace(/^```[^]*?^```/gm, "");
}

/** The words in `code` of a text. */
function codes(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

describe("ARCHITECTURE.md", () => {
  test("has the ranks that the import rules have", () => {
    const rows = read("ARCHITECTURE.md")
      .split("\n")
      .filter((line) => /^\| \d \|/.test(line));
    const told = rows.slice(0, -1).flatMap((row) => {
      const [, rank, folders = ""] = row.split("|");
      return codes(folders).map((folder) => [folder, Number(rank)] as const);
    });
    expect(Object.fromEntries(told)).toEqual(folderRanks);
    expect(rows.at(-1)).toMatch(new RegExp(`^\\| ${topRank} \\| the files directly in`));
  });

  test("can be read in one sitting", () => {
    expect(readFileSync(join(root, "ARCHITECTURE.md")).byteLength).toBeLessThanOrEqual(maxBytes);
  });

  test.each(["ARCHITECTURE.md", "docs/extend.md"])("and %s name files that are there", (page) => {
    // Files of the folder that a step is about are named without it.
    const folders = ["", "worker", "worker/invocation"];
    const named = codes(read(page)).filter((code) => /^[\w/.-]+\/[\w.-]*$|\.(?:ts|md)$/.test(code));
    // What an addition would make is not there yet, nor is a build.
    const real = named.filter((path) => !/[<*]|^dist\//.test(path));
    expect(real.length).toBeGreaterThan(15);
    const isThere = (path: string): boolean =>
      folders.some((folder) => globSync(join(folder, path), { cwd: root }).length > 0);
    expect(real.filter((path) => !isThere(path.replace(/\/$/, "")))).toEqual([]);
  });
});
