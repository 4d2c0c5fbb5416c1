/**
 * The virtual environment of an author of Python tools, with this project's wheel installed.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { python } from "../pypi-packages.ts";

const run = promisify(execFile);
const checkout = join(import.meta.dirname, "../../..");

/** A temporary directory with an environment. Disposing removes it. */
export interface PythonProject extends AsyncDisposable {
  readonly directory: string;
  /** The environment's interpreter. */
  readonly python: string;
}

/** Builds the wheel and installs it, without a network. */
export async function createPythonProject(): Promise<PythonProject> {
  const directory = await mkdtemp(join(tmpdir(), "str-author-"));
  const own = join(directory, "venv", "bin", "python");
  try {
    await run(python, ["-m", "venv", join(directory, "venv")]);
    const wheelScript = join(checkout, "scripts", "wheel.mjs");
    const { stdout } = await run(process.execPath, [wheelScript, join(directory, "wheels")]);
    await run(own, ["-m", "pip", "install", "--quiet", "--no-index", stdout.trim()]);
  } catch (error) {
    await rm(directory, { recursive: true });
    throw error;
  }
  return {
    directory,
    python: own,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}
