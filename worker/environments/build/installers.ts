/**
 * Finds the installers of this host: uv or pip for Python, npm for Node.
 */
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { EnvironmentError, type Interpreter } from "../environments.ts";
import { isSystemPath } from "../../support/files/system-paths.ts";
import type { SharedPath } from "./run.ts";

/** Where installers are looked for. */
export interface InstallerOptions {
  /** `PATH` of the worker. */
  readonly searchPath: string;
  /** Where uv is (`PACKAGE_UV_BIN`); it is looked for in the search path otherwise. */
  readonly uvBin: string | undefined;
}

/** A program that a sandbox runs, and what it has to mount for it. */
export interface InstallerProgram {
  readonly name: "uv" | "pip" | "npm";
  /** Command line inside, without its arguments. */
  readonly argv: readonly string[];
  readonly shares: readonly SharedPath[];
}

const run = promisify(execFile);

const inside = "/sandbox/installer";
/** Ends with 1 where there is no pip. */
const aboutPip = 'import importlib.util, sys; sys.exit(importlib.util.find_spec("pip") is None)';
/** Milliseconds for an interpreter to answer. */
const questionTimeoutMs = 30_000;

/** uv when it is there, else pip. Throws EnvironmentError where there is neither. */
export async function pythonInstaller(
  interpreter: Interpreter,
  options: InstallerOptions,
): Promise<InstallerProgram> {
  const uv = await findUv(options);
  if (uv !== undefined) return uv;
  const { executable } = interpreter;
  if (await hasPip(executable))
    return { name: "pip", argv: [executable, "-I", "-m", "pip"], shares: [] };
  throw new EnvironmentError(
    "there is neither uv nor pip to install packages; install uv, or pip for the interpreter of tools (Debian: apt-get install -y python3-pip)",
    { publicReason: "the worker has no installer for its packages" },
  );
}

/** uv, or undefined. Throws EnvironmentError when `PACKAGE_UV_BIN` is no program. */
export async function findUv(options: InstallerOptions): Promise<InstallerProgram | undefined> {
  const path = options.uvBin ?? (await findProgram("uv", options.searchPath));
  if (path === undefined) return undefined;
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) throw new EnvironmentError("PACKAGE_UV_BIN names no file");
  if (isSystemPath(real)) return { name: "uv", argv: [real], shares: [] };
  const target = join(inside, "uv");
  return { name: "uv", argv: [target], shares: [{ path: real, target }] };
}

/** npm, run by the Node program of tools. Throws EnvironmentError where there is none. */
export async function nodeInstaller(
  node: string,
  { searchPath }: InstallerOptions,
): Promise<InstallerProgram> {
  const beside = join(dirname(await realpath(node)), "npm");
  const path = (await isProgram(beside)) ? beside : await findProgram("npm", searchPath);
  const cli = path === undefined ? undefined : await realpath(path);
  if (cli === undefined || !/\bnpm(?:-cli)?\.js$/.test(cli))
    throw new EnvironmentError(
      "there is no npm to install packages; install npm, and have its directory in PATH of the worker",
      { publicReason: "the worker has no installer for its packages" },
    );
  if (isSystemPath(cli)) return { name: "npm", argv: [cli], shares: [] };
  // npm-cli.js is in the folder bin of its package.
  const target = join(inside, "npm");
  return {
    name: "npm",
    argv: [join(target, "bin", "npm-cli.js")],
    shares: [{ path: dirname(dirname(cli)), target }],
  };
}

function hasPip(python: string): Promise<boolean> {
  const options = { env: {}, cwd: "/", timeout: questionTimeoutMs };
  return run(python, ["-I", "-c", aboutPip], options).then(
    () => true,
    () => false,
  );
}

async function findProgram(name: string, searchPath: string): Promise<string | undefined> {
  for (const directory of searchPath.split(":")) {
    if (!directory.startsWith("/")) continue;
    const path = join(directory, name);
    if (await isProgram(path)) return path;
  }
  return undefined;
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
