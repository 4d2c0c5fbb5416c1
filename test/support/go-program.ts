/**
 * Programs of Go modules for tests: built once on a machine, and used by later runs as they are.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { slowPlace } from "./sandboxes/quick-place.ts";

const run = promisify(execFile);
const buildTimeoutMs = 600_000;

/** Where Go is installed besides, by its own instructions. */
const usualPlace = "/usr/local/go/bin";

/**
 * Path of the program of a module in this version. Skips the tests where there is no Go, or its
 * proxy is not reached.
 */
export async function goProgram(
  { skip }: Pick<TestContext, "skip">,
  module: string,
  version: string,
): Promise<string> {
  const name = basename(module);
  const directory = join(slowPlace, `str-test-go-${name}-${version}`);
  const program = join(directory, name);
  if (existsSync(program)) return program;
  const fresh = await mkdtemp(`${directory}-`);
  try {
    const env = {
      ...process.env,
      PATH: [process.env["PATH"], usualPlace].join(delimiter),
      GOBIN: fresh,
      GOFLAGS: "-p=1",
    };
    const options = { env, timeout: buildTimeoutMs };
    await run("go", ["install", `${module}@${version}`], options).catch((error: unknown) => {
      const { stderr = "" } = error as { stderr?: string };
      const reason = (stderr || String(error)).trim().split("\n").at(-1);
      skip(`${name} cannot be built by Go: ${reason}`);
    });
    // Another run may have been faster.
    await rename(fresh, directory).catch(() => undefined);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return program;
}
