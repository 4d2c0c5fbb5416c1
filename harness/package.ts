/**
 * Paths of this package's files: in a checkout beside the sources, otherwise below `dist/`.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

const extension = extname(import.meta.filename);

/** The tree that this file belongs to; the worker is in it. */
const root = dirname(import.meta.dirname);

/**
 * What npm installs: the checkout itself, or the directory that `dist/`, examples and tool runner
 * are in.
 */
export const packageRoot = extension === ".ts" ? root : dirname(root);

/** Whether this is a checkout, with the sources. */
export const isCheckout = extension === ".ts";

/** The worker's program; the Node that runs us runs it too. */
export const workerProgram = join(root, "worker", `main${extension}`);

/** The worker's command, for people. */
export const workerCommandPath = join(packageRoot, "bin", "str-worker.mjs");

/** Our own command, for people. */
export const harnessCommandPath = join(packageRoot, "bin", "harness.mjs");

/** The tool runners, in a directory for each language. */
const toolRunnerDir = join(packageRoot, "tool-runner");

/** What authors of Node tools install, for its types and their tests. */
export const nodeToolPackage = join(toolRunnerDir, "node");

/** The directories whose files a running worker was made of; in `dist/` programs share files. */
export const workerSources: readonly string[] = [
  isCheckout ? join(root, "worker") : root,
  toolRunnerDir,
];

/** The manifest of the example tools. */
export const exampleManifest = join(packageRoot, "examples", "tools", "manifest.yaml");

/** The Python modules of the example tools. */
export const examplePythonDir = join(packageRoot, "examples", "tools", "python");

/** The Node modules of the example tools. */
export const exampleNodeDir = join(packageRoot, "examples", "tools", "node");

/** The programs of the example tools. */
export const exampleExecutableDir = join(packageRoot, "examples", "tools", "executable");

/** A text file of each installation. */
export function exampleText(): string {
  const readme = join(packageRoot, "README.md");
  return existsSync(readme) ? readme : join(packageRoot, "LICENSE");
}

/** The version in package.json. */
export function packageVersion(): string {
  const text = readFileSync(join(packageRoot, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * What authors of Python tools install; `npm run wheel` makes it. Its version is this package's.
 */
export function pythonWheel(): string {
  const name = `secure_tool_runtime-${packageVersion()}-py3-none-any.whl`;
  return join(packageRoot, "dist", "python", name);
}
