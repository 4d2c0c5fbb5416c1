/**
 * Packages of PyPI for tests: installed once on a machine, and used by later runs as they are.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { slowPlace } from "./sandboxes/quick-place.ts";

const run = promisify(execFile);
const installTimeoutMs = 300_000;

/** How packages are installed. */
export interface PypiOptions {
  /** Whether with all that they name; a test that needs a part of a package needs few of those. */
  readonly hasDependencies?: boolean;
}

/**
 * A directory with these packages for the machine's Python. Skips the test where PyPI is not
 * reached.
 */
export async function pypiPackages(
  context: TestContext,
  packages: readonly string[],
  { hasDependencies = true }: PypiOptions = {},
): Promise<string> {
  const python = "/usr/bin/python3";
  const { stdout: version } = await run(python, ["--version"]);
  const key = createHash("sha256")
    .update(JSON.stringify([version, packages, hasDependencies]))
    .digest("hex");
  const directory = join(slowPlace, `str-test-packages-${key.slice(0, 16)}`);
  if (existsSync(directory)) return directory;
  const fresh = await mkdtemp(`${directory}-`);
  try {
    const options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
    const alone = hasDependencies ? [] : ["--no-deps"];
    const argv = ["-m", "pip", "install", ...options, ...alone, "--target", fresh, ...packages];
    await run(python, argv, { timeout: installTimeoutMs }).catch((error: unknown) => {
      const [reason] = String((error as { stderr?: string }).stderr ?? error).split("\n");
      context.skip(`packages cannot be installed from PyPI: ${reason}`);
    });
    await chmod(fresh, 0o755);
    // Another run may have been faster.
    await rename(fresh, directory).catch(() => undefined);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return directory;
}
