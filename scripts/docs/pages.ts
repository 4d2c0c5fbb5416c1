/**
 * Pages with generated tables. A table stands between `<!-- npm run docs writes NAME -->` and
 * `<!-- end of NAME -->`.
 */
import { globSync, readFileSync } from "node:fs";
import { tables } from "./tables.ts";

/** The project's root. */
export const root: URL = new URL("../../", import.meta.url);

/** A page as it stands, and as the code has it. */
export interface GeneratedPage {
  /** From the project's root. */
  readonly path: string;
  readonly text: string;
  readonly generated: string;
  /** Names of its tables. */
  readonly tables: readonly string[];
}

const region = /^<!-- npm run docs writes (.+) -->$[^]*?^<!-- end of \1 -->$/gm;

/** Every page of docs/. Throws for a mark that names no table. */
export function generatedPages(): readonly GeneratedPage[] {
  return globSync("docs/*.md", { cwd: root })
    .sort()
    .map((path) => {
      const text = readFileSync(new URL(path, root), "utf8");
      const names = [...text.matchAll(region)].map(([, name = ""]) => name);
      return { path, text, generated: withTables(text), tables: names };
    });
}

function withTables(text: string): string {
  return text.replaceAll(region, (_, name: string) => {
    const lines = tables[name];
    if (lines === undefined) throw new Error(`No table is called "${name}"`);
    return [
      `<!-- npm run docs writes ${name} -->`,
      "",
      ...lines,
      "",
      `<!-- end of ${name} -->`,
    ].join("\n");
  });
}
