/**
 * Packages of PyPI for tests.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "./installed-once.ts";

const run = promisify(execFile);
const timeoutMs = 300_000;

/** The machine's Python, for which packages are installed. */
export const python = "/usr/bin/python3";

/** How packages are installed. */
export interface PypiOptions {
  /** Whether with all that they name; a test that needs a part of a package needs few of those. */
  readonly hasDependencies?: boolean;
}

/** A directory with these packages. Rejects with NotInstalled. */
export async function installPypiPackages(
  packages: readonly string[],
  { hasDependencies = true }: PypiOptions = {},
): Promise<string> {
  const { stdout: version } = await run(python, ["--version"]);
  const options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
  const alone = hasDependencies ? [] : ["--no-deps"];
  return installedOnce({
    title: packages.join(", "),
    key: [version, packages, hasDependencies],
    timeoutMs,
    command: (directory) => [
      python,
      ...["-m", "pip", "install", ...options, ...alone, "--target", directory, ...packages],
    ],
  });
}

/** The same for a test, which is skipped where PyPI is not reached. */
export function pypiPackages(
  context: TestContext,
  packages: readonly string[],
  options?: PypiOptions,
): Promise<string> {
  return installedOrSkipped(context, installPypiPackages(packages, options));
}
