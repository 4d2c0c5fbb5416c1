/**
 * Programs of Go modules for tests.
 */
import { execFile } from "node:child_process";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { NotInstalled, installedOnce, installedOrSkipped } from "./installed-once.ts";
import { slowPlace } from "./sandboxes/quick-place.ts";

const run = promisify(execFile);
const buildTimeoutMs = 600_000;

/** Where Go is installed besides, by its own instructions. */
const usualPlace = "/usr/local/go/bin";

/** Path of the program of a module in this version. Rejects with NotInstalled. */
export async function installGoProgram(module: string, version: string): Promise<string> {
  const PATH = [process.env["PATH"], usualPlace].join(delimiter);
  const go = await run("go", ["version"], { env: { ...process.env, PATH } }).catch(() => {
    throw new NotInstalled(`${module} cannot be built: there is no Go`);
  });
  const directory = await installedOnce({
    title: module,
    key: [go.stdout, module, version],
    timeoutMs: buildTimeoutMs,
    // One build at a time: another one finds the parts that both have.
    command: () => [
      ...["flock", "--no-fork", join(slowPlace, "str-test-go.lock")],
      ...["nice", "-n", "10", "go", "install", `${module}@${version}`],
    ],
    variables: (fresh) => ({ PATH, GOBIN: fresh, GOTOOLCHAIN: "local" }),
  });
  return join(directory, basename(module));
}

/** The same for a test, which is skipped where there is no Go, or its proxy is not reached. */
export function goProgram(
  context: Pick<TestContext, "skip">,
  module: string,
  version: string,
): Promise<string> {
  return installedOrSkipped(context, installGoProgram(module, version));
}
