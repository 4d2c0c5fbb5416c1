/**
 * Makes the image files of a release in a directory, for tests, which must not wait in their own
 * process: `node make-image.ts DIRECTORY VERSION`. Ends with 69 where no engine answers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findBase, removeMadeBase } from "../../../scripts/container/base.mjs";
import { Unavailable, findEngine } from "../../../scripts/container/engine.mjs";
import { makeImage } from "../../../scripts/release/image.ts";

const exitUnavailable = 69;
const removalMs = 60_000;
const root = fileURLToPath(new URL("../../..", import.meta.url));
const [, , directory = "", version = ""] = process.argv;
const scratch = mkdtempSync(join(tmpdir(), "str-image-"));
try {
  const engine = findEngine();
  try {
    const base = findBase(engine, root, scratch);
    console.log(makeImage(engine, { root, directory, version, base }).summary);
  } finally {
    engine.run(["rmi", "--force", `str-worker:${version}`], removalMs);
    removeMadeBase(engine);
  }
} catch (error) {
  if (!(error instanceof Unavailable)) throw error;
  console.error(error.message);
  process.exitCode = exitUnavailable;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
