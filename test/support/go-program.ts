/**
 * Programs of Go modules for tests.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { NotInstalled, installedOnce, installedOrSkipped } from "./installed-once.ts";
import { slowPlace } from "./sandboxes/quick-place.ts";

const run = promisify(execFile);
const buildTimeoutMs = 600_000;

/** Where Go is installed besides, by its own instructions. */
const usualPlace = "/usr/local/go/bin";

/** Rejects with NotInstalled where there is no Go. */
async function goVersion(
  title: string,
): Promise<{ readonly version: string; readonly PATH: string }> {
  const PATH = [process.env["PATH"], usualPlace].join(delimiter);
  const go = await run("go", ["version"], { env: { ...process.env, PATH } }).catch(() => {
    throw new NotInstalled(`${title} cannot be built: there is no Go`);
  });
  return { version: go.stdout, PATH };
}

/** Path of the program of a module in this version. Rejects with NotInstalled. */
export async function installGoProgram(module: string, version: string): Promise<string> {
  const { version: goIs, PATH } = await goVersion(module);
  const directory = await installedOnce({
    title: module,
    key: [goIs, module, version],
    timeoutMs: buildTimeoutMs,
    // One build at a time: another one finds the parts that both have.
    command: () => [
      ...["flock", "--no-fork", join(slowPlace, "str-test-go.lock")],
      ...["nice", "-n", "10", "go", "install", `${module}@${version}`],
    ],
    variables: (fresh) => ({ PATH, GOBIN: fresh, GOTOOLCHAIN: "local" }),
  });
  // Go names a program by the module, without its major version.
  return join(directory, basename(module.replace(/\/v\d+$/, "")));
}

/** The same for a test, which is skipped where there is no Go, or its proxy is not reached. */
export function goProgram(
  context: Pick<TestContext, "skip">,
  module: string,
  version: string,
): Promise<string> {
  return installedOrSkipped(context, installGoProgram(module, version));
}

/** A copy of a directory of a module; the test is skipped as by `goProgram`. */
export async function goModuleFiles(
  context: Pick<TestContext, "skip">,
  module: string,
  version: string,
  path: string,
): Promise<string> {
  const copy = [
    `set -e; cd "$1"; go mod init example.com/files 2>&1`,
    `go mod download "$2" >&2; cp -r "$(go list -m -f '{{.Dir}}' "$2")/$3" files; chmod -R u+w files`,
  ].join("; ");
  const { PATH } = await installedOrSkipped(context, goVersion(module));
  const installation = {
    title: module,
    key: ["go files", module, version, path],
    timeoutMs: buildTimeoutMs,
    command: (directory: string) => [
      ...["/bin/sh", "-c", copy, "sh", directory, `${module}@${version}`, path],
    ],
    variables: () => ({ PATH, GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod" }),
  };
  return join(await installedOrSkipped(context, installedOnce(installation)), "files");
}

/** The program of a directory of sources, built; the test is skipped where there is no Go. */
export async function builtGoProgram(
  context: Pick<TestContext, "skip">,
  sourceDir: string,
): Promise<Buffer> {
  const title = basename(sourceDir);
  const { PATH } = await installedOrSkipped(context, goVersion(title));
  const directory = await mkdtemp(join(slowPlace, "str-test-go-"));
  try {
    const file = join(directory, title);
    const env = {
      ...process.env,
      PATH,
      CGO_ENABLED: "0",
      GOTOOLCHAIN: "local",
      GOFLAGS: "-mod=mod",
    };
    await run("go", ["build", "-o", file, "."], { cwd: sourceDir, env, timeout: buildTimeoutMs });
    return await readFile(file);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
