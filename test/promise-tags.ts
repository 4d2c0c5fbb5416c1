/**
 * The ids of the promises of SECURITY.md, of which each is the tag of the tests that try to break
 * its promise.
 */

/** What a tag has before the id. */
export const promisePrefix = "promise-";

const table = /^\| Id \| Promise \| How \|\n\|[-|]+\n((?:\|.*\n)+)/gm;

/** @returns the ids of each table of promises, in the order of the rows */
export function promiseTables(markdown: string): readonly (readonly string[])[] {
  return [...markdown.matchAll(table)].map(([, rows = ""]) =>
    rows
      .trimEnd()
      .split("\n")
      .map((row) => row.split("|")[1]?.trim() ?? ""),
  );
}
