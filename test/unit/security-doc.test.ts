/**
 * SECURITY.md keeps its word: every promise in it has tests, which have its id as a tag.
 */
import { globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { promisePrefix, promiseTables } from "../promise-tags.ts";
import { fullTag } from "../reporter.ts";

const root = join(import.meta.dirname, "../..");
const tables = promiseTables(readFileSync(join(root, "SECURITY.md"), "utf8"));
const ids = tables.flat();

/** In parts: written out, it would be one of this file. */
const moduleTag = ["@module", "tag"].join("-");

/** The tags of each test and suite of a source that has any. */
function tagsOf(source: string): readonly (readonly string[])[] {
  return [...source.matchAll(/\btags: (\[[^\]]*\]|"[^"]*")/g)].map(([, tags = ""]) =>
    [...tags.matchAll(/"([^"]*)"/g)].map(([, tag = ""]) => tag),
  );
}

function idsIn(tags: readonly string[]): readonly string[] {
  return tags
    .filter((tag) => tag.startsWith(promisePrefix))
    .map((tag) => tag.slice(promisePrefix.length));
}

/** The ids of promises that tests of a source have as tags. */
function taggedIds(source: string): readonly string[] {
  return tagsOf(source).flatMap(idsIn);
}

/** Those of them that tests of `npm test` have: the others are in full runs only. */
function quickIds(path: string, source: string): readonly string[] {
  if (path.startsWith("test/full/") || source.includes(`${moduleTag} ${fullTag}`)) return [];
  return tagsOf(source)
    .filter((tags) => !tags.includes(fullTag))
    .flatMap(idsIn);
}

/** Promises that only full runs test: of templates of packages, and of a worker that is PID 1. */
const onlyInFullRuns = ["W5", "R5"];

/** The ids that are wrong: those of a table have a letter of its own, and numbers that rise. */
function wrongIds(all: readonly (readonly string[])[]): readonly string[] {
  const letters = new Set<string>();
  return all.flatMap((row) => {
    const letter = row[0]?.[0] ?? "";
    const isOwn = !letters.has(letter);
    letters.add(letter);
    let last = 0;
    return row.filter((id) => {
      const number = id.startsWith(letter) && /^[A-Z][1-9]\d*$/.test(id) ? Number(id.slice(1)) : 0;
      const isRight = isOwn && number > last;
      if (isRight) last = number;
      return !isRight;
    });
  });
}

const sources = globSync("test/**/*.ts", { cwd: root })
  .filter((path) => path !== relative(root, import.meta.filename))
  .map((path) => [path, readFileSync(join(root, path), "utf8")] as const);
const idsByFile = new Map(sources.map(([path, source]) => [path, taggedIds(source)]));
const tagged = new Set([...idsByFile.values()].flat());
const quick = new Set(sources.flatMap(([path, source]) => quickIds(path, source)));

describe("the promises of SECURITY.md", () => {
  test("are found, and their ids are unique and in order", () => {
    expect(ids.length).toBeGreaterThan(25);
    expect(wrongIds(tables)).toEqual([]);
  });

  test("have tests", () => {
    expect(ids.filter((id) => !tagged.has(id))).toEqual([]);
  });

  test("have tests in every run", () => {
    expect(ids.filter((id) => !quick.has(id))).toEqual(onlyInFullRuns);
  });

  test("are all that tags of tests name", () => {
    expect([...tagged].filter((id) => !ids.includes(id))).toEqual([]);
  });

  test("have tests in every file of test/security", () => {
    const files = [...idsByFile].filter(([path]) => /^test\/security\/.*\.test\.ts$/.test(path));
    expect(files).not.toEqual([]);
    expect(files.filter(([, named]) => named.length === 0)).toEqual([]);
  });
});

describe("the check itself", () => {
  test("finds the tags of promises, and no others", () => {
    expect(taggedIds('test("a", { tags: "promise-A1" }, run)')).toEqual(["A1"]);
    expect(taggedIds('{ tags: ["full", "promise-A1",\n "promise-B2"], timeout: 1 }')).toEqual([
      "A1",
      "B2",
    ]);
    expect(taggedIds('describe("promise-A1", { tags: "full" }, run)')).toEqual([]);
    expect(taggedIds("// the promise-A1 is kept in")).toEqual([]);
  });

  test("tells the tests of every run from those of full runs", () => {
    const source =
      'test("a", { tags: ["full", "promise-A1"] });\ntest("b", { tags: "promise-B2" });';
    expect(quickIds("test/unit/a.test.ts", source)).toEqual(["B2"]);
    expect(quickIds("test/full/a.test.ts", source)).toEqual([]);
    expect(quickIds("test/unit/a.test.ts", `/** ${moduleTag} full */\n${source}`)).toEqual([]);
  });

  test("reads the ids of tables of promises, and of no others", () => {
    const head = "| Id | Promise | How |\n|---|---|---|\n";
    const limits = "| What | Effect | Mitigation |\n|---|---|---|\n| w | e | m |\n";
    const text = `${limits}\n${head}| A1 | p | h |\n| A2 | p | h |\n\n${limits}\n${head}| B1 | p | h |\n`;
    expect(promiseTables(text)).toEqual([["A1", "A2"], ["B1"]]);
  });

  test("refuses ids that are taken, not in order, of another section or no ids", () => {
    expect(wrongIds([["A1", "A2", "A10"], ["B2"]])).toEqual([]);
    expect(wrongIds([["A1", "A1", "A2"]])).toEqual(["A1"]);
    expect(wrongIds([["A2", "A1", "A3"]])).toEqual(["A1"]);
    expect(wrongIds([["A1", "B2"]])).toEqual(["B2"]);
    expect(wrongIds([["A1"], ["B1"], ["A2"]])).toEqual(["A2"]);
    expect(wrongIds([["A1", "", "A02", "a3"]])).toEqual(["", "A02", "a3"]);
  });
});
