/**
 * SECURITY.md keeps its word: every promise in it names tests that are there.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const markdown = readFileSync(join(root, "SECURITY.md"), "utf8");

/** A test that a promise names: `path`: "words of its name". */
interface Citation {
  readonly path: string;
  readonly name: string;
}

interface PromiseRow {
  readonly promise: string;
  readonly citations: readonly Citation[];
}

/** The rows of every table whose columns are promise, how and test. */
function promiseRows(text: string): readonly PromiseRow[] {
  const rows: PromiseRow[] = [];
  let isInTable = false;
  for (const line of text.split("\n")) {
    if (!line.startsWith("|")) isInTable = false;
    if (isInTable && !/^\|[-|]+$/.test(line)) rows.push(readRow(line));
    if (line === "| Promise | How | Test |") isInTable = true;
  }
  return rows;
}

function readRow(line: string): PromiseRow {
  const [promise = "", , tests = ""] = line.slice(1, -1).split("|");
  const citations = tests.split("<br>").map((cell) => {
    const [, path, name] = /^`(test\/\S+\.ts)`: "(.+)"$/.exec(cell.trim()) ?? [];
    if (path === undefined || name === undefined) throw new Error(`unreadable: ${cell}`);
    return { path, name };
  });
  return { promise: promise.trim(), citations };
}

/**
 * Whether a test of the file has these words in its name: on the line of the test, or in the list
 * that it is for.
 */
function hasTest(source: string, words: string): boolean {
  return source.split("\n").some((line) => {
    const at = line.indexOf(words);
    return at !== -1 && /^\s*((test|describe)\w*\b.*|\]\)\(|\[)?["`]/.test(line.slice(0, at));
  });
}

const rows = promiseRows(markdown);
const citations = rows.flatMap((row) => row.citations);

describe("the promises of SECURITY.md", () => {
  test("are found, and each names a test", () => {
    expect(rows.length).toBeGreaterThan(25);
    for (const { promise, citations: named } of rows) {
      expect(`${promise} ${named.length}`).toMatch(/\w.* [1-9]$/);
    }
  });

  test.each(citations)('name a test that is there: $path: "$name"', ({ path, name }) => {
    expect(existsSync(join(root, path))).toBe(true);
    expect(hasTest(readFileSync(join(root, path), "utf8"), name)).toBe(true);
  });

  test("name every file of test/security", () => {
    const cited = new Set(citations.map(({ path }) => path));
    const files = readdirSync(join(root, "test/security")).map((name) => `test/security/${name}`);
    expect(files.filter((file) => file.endsWith(".test.ts") && !cited.has(file))).toEqual([]);
  });
});

describe("the check itself", () => {
  test("finds names of tests, and of the cases of a list, and no other text", () => {
    expect(hasTest('  test("is kept in", () => {', "is kept in")).toBe(true);
    expect(hasTest("  test.each(tools)(`${name} is kept in`, () => {", "is kept in")).toBe(true);
    expect(hasTest('    "of profile %s is kept in",', "is kept in")).toBe(true);
    expect(hasTest('    ["for another tool", 1],', "for another tool")).toBe(true);
    expect(hasTest('  ])("is kept in", () => {', "is kept in")).toBe(true);
    expect(hasTest("  // a tool is kept in", "is kept in")).toBe(false);
    expect(hasTest("const kept = is kept in;", "is kept in")).toBe(false);
  });

  test("refuses a promise without a test that can be read", () => {
    const table = ["| Promise | How | Test |", "|---|---|---|"];
    expect(() => promiseRows([...table, "| p | h | soon |"].join("\n"))).toThrow(/unreadable/);
    expect(promiseRows([...table, '| p | h | `test/a.ts`: "b" |', "", "| q |"].join("\n"))).toEqual(
      [{ promise: "p", citations: [{ path: "test/a.ts", name: "b" }] }],
    );
  });
});
