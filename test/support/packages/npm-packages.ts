/**
 * Packages of npm's registry for tests.
 */
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";

const timeoutMs = 300_000;

/**
 * A directory that has these packages in `node_modules`, installed once on a machine. The test is
 * skipped where the registry is not reached.
 */
export function npmPackages(
  context: Pick<TestContext, "skip">,
  packages: readonly string[],
): Promise<string> {
  const installed = installedOnce({
    title: packages.join(", "),
    key: ["npm", packages],
    timeoutMs,
    command: (directory) => [
      ...["npm", "install", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund"],
      ...packages,
    ],
  });
  return installedOrSkipped(context, installed);
}
