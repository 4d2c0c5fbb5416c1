/**
 * Writes the tables that documents repeat of the code: `npm run docs`. A test compares the pages
 * with what this writes.
 */
import { writeFileSync } from "node:fs";
import { generatedPages, root } from "./docs/pages.ts";

for (const { path, text, generated } of generatedPages()) {
  if (text === generated) continue;
  writeFileSync(new URL(path, root), generated);
  console.log(`${path} is written`);
}
