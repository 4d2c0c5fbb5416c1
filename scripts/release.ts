/**
 * Releases a version: `npm run release -- VERSION [options]`. docs/releases.md describes it.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ReleaseRefused, release } from "./release/release.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const options = {
  "dry-run": { type: "boolean", default: false },
  "image-base": { type: "string" },
  "without-image": { type: "boolean", default: false },
} as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const [version, ...others] = positionals;
if (version === undefined || others.length > 0) {
  console.error(
    "usage: npm run release -- VERSION [--dry-run] [--image-base IMAGE | --without-image]",
  );
  process.exitCode = 64;
} else {
  try {
    const date = new Date().toISOString().slice(0, 10);
    const { "dry-run": isDryRun, "image-base": base, "without-image": isWithout } = values;
    const image = isWithout ? false : { base };
    release({ root, version, isDryRun, image, date, print: console.log });
  } catch (error) {
    if (!(error instanceof ReleaseRefused)) throw error;
    console.error(`${version} is not released:\n${error.message}`);
    process.exitCode = 1;
  }
}
