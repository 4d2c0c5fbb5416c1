/**
 * ARCHITECTURE.md shows the house as it stands: every file in the table of its room, every room at
 * its rank.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { rooms, topRank } from "../architecture/rooms.ts";

const root = join(import.meta.dirname, "../..");
/** Without the picture. */
const markdown = readFileSync(join(root, "ARCHITECTURE.md"), "utf8").replace(/^```[^]*?^```/gm, "");

/** The words in `code` of a text. */
function codes(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

/** The first column of the table under a heading. */
function firstColumn(heading: string): readonly string[] {
  const start = markdown.indexOf(`\n${heading}\n`);
  expect(`${heading} at ${start}`).not.toMatch(/ at -1$/);
  const section = markdown.slice(start + heading.length + 2).split(/^#/m)[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|")[1] ?? "");
}

/** Source files below a folder, relative to it. */
function filesIn(folder: string, pattern: string): readonly string[] {
  return globSync(pattern, {
    cwd: join(root, folder),
    exclude: (path) => path.includes("__pycache__"),
  }).toSorted();
}

describe("ARCHITECTURE.md", () => {
  test.each([
    ["worker/", "*.ts"],
    ...Object.keys(rooms).map((room) => [`worker/${room}/`, "**/*.ts"] as const),
    ["harness/", "**/*.ts"],
    ["tool-runner/python/", "**/*.py"],
    ["tool-runner/node/", "**/*.{js,d.ts}"],
    ["bench/", "*.{ts,py}"],
  ] as const)("lists the files of %s, and no others", (folder, pattern) => {
    const listed = firstColumn(`### \`${folder}\``).flatMap(codes);
    expect(listed.toSorted()).toEqual(filesIn(folder, pattern));
  });

  test("has the ranks that the import rules have", () => {
    const rows = markdown.split("\n").filter((line) => /^\| \d \|/.test(line));
    const told = rows.slice(0, -1).flatMap((row) => {
      const rank = Number(row.split("|")[1]);
      return codes(row).map((room) => [room, rank] as const);
    });
    expect(Object.fromEntries(told)).toEqual(rooms);
    expect(rows.at(-1)).toMatch(new RegExp(`^\\| ${topRank} \\| the files directly in`));
  });

  test("points to files that are there", () => {
    const links = [...markdown.matchAll(/\]\(([^)#]+)\)/g)].map(([, path = ""]) => path);
    const paths = codes(markdown).filter((code) =>
      /^(worker|test|docs|tool-runner|harness)\//.test(code),
    );
    // What an addition would make is not there yet.
    const real = [...links, ...paths].filter((path) => !/[<*]|sandbox\/backends\.ts$/.test(path));
    expect(real.length).toBeGreaterThan(30);
    expect(
      real.filter((path) => globSync(path.replace(/\/$/, ""), { cwd: root }).length === 0),
    ).toEqual([]);
  });
});
