/**
 * Releases a version: `npm run release -- VERSION [--dry-run]`. docs/releases.md describes it.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ReleaseRefused, release } from "./release/release.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const options = { "dry-run": { type: "boolean", default: false } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const [version, ...others] = positionals;
if (version === undefined || others.length > 0) {
  console.error("usage: npm run release -- VERSION [--dry-run]");
  process.exitCode = 64;
} else {
  try {
    const date = new Date().toISOString().slice(0, 10);
    release({ root, version, isDryRun: values["dry-run"], date, print: console.log });
  } catch (error) {
    if (!(error instanceof ReleaseRefused)) throw error;
    console.error(`${version} is not released:\n${error.message}`);
    process.exitCode = 1;
  }
}
