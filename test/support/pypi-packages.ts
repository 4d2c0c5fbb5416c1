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
  /** For another system, in pip's words; this machine's unless given. Then without dependencies. */
  readonly platform?: string;
}

/** A directory with these packages. Rejects with NotInstalled. */
export async function installPypiPackages(
  packages: readonly string[],
  { platform, hasDependencies = platform === undefined }: PypiOptions = {},
): Promise<string> {
  const { stdout: version } = await run(python, ["--version"]);
  const options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
  const alone = hasDependencies ? [] : ["--no-deps"];
  const system = platform === undefined ? [] : ["--platform", platform];
  return installedOnce({
    title: packages.join(", "),
    key: [version, packages, hasDependencies, ...system],
    timeoutMs,
    command: (directory) => [
      python,
      ...["-m", "pip", "install", ...options, ...alone, ...system],
      ...["--target", directory, ...packages],
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
