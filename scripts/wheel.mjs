/**
 * Builds the wheel of `secure_tool_runtime` for authors of Python tools, without a network: by the
 * setuptools that Debian has.
 *
 *     node scripts/wheel.mjs [DIRECTORY]
 *
 * Prints its path. Runs under Node 20: `npm pack` may be called with it.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const python = "/usr/bin/python3";
/** The earliest time that a ZIP file can state: one content makes one wheel. */
const epochSeconds = "315532800";
const build = `
import sys
from setuptools import build_meta
print(build_meta.build_wheel(sys.argv[1]))`;

const directory = resolve(process.argv[2] ?? join(root, "dist", "python"));
// A copy: setuptools leaves directories of its own beside what it builds.
const copy = mkdtempSync(join(tmpdir(), "str-wheel-"));
try {
  for (const name of ["pyproject.toml", "secure_tool_runtime"]) {
    cpSync(join(root, "tool-runner", "python", name), join(copy, name), {
      recursive: true,
      filter: (path) => basename(path) !== "__pycache__",
    });
  }
  mkdirSync(directory, { recursive: true });
  const output = execFileSync(python, ["-c", build, directory], {
    cwd: copy,
    encoding: "utf8",
    env: { PATH: process.env.PATH, SOURCE_DATE_EPOCH: epochSeconds },
    stdio: ["ignore", "pipe", "pipe"],
  });
  console.log(join(directory, output.trim().split("\n").at(-1)));
} finally {
  rmSync(copy, { recursive: true });
}
