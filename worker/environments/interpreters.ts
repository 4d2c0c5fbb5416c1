/**
 * Asks interpreters what packages for them have to fit.
 */
import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { sep } from "node:path";
import { promisify } from "node:util";
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import { EnvironmentError, type Interpreter } from "./environments.ts";

const run = promisify(execFile);

/** Milliseconds for an interpreter to answer. */
const questionTimeoutMs = 30_000;

const aboutPython = `
import importlib.util, json, os, sys, sysconfig
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
print(json.dumps({
    "bin": sys.executable,
    "identity": [sys.implementation.name, list(sys.version_info[:2]),
        sysconfig.get_config_var("SOABI"), sysconfig.get_platform(), sys.executable],
    "directories": [p for p in paths if os.path.isdir(p)],
    "hasPip": importlib.util.find_spec("pip") is not None,
}))`;

const aboutNode = `
const { versions, platform, arch, execPath } = process;
const libc = process.report?.getReport().header.glibcVersionRuntime === undefined ? "other" : "glibc";
console.log(JSON.stringify({ bin: execPath, identity: [versions.modules, platform, arch, libc],
  directories: [], hasPip: false }));`;

interface Answer {
  readonly bin: string;
  readonly identity: readonly unknown[];
  readonly directories: readonly string[];
  readonly hasPip: boolean;
}

/** The interpreter of a tool. Each program is asked once, when it is first needed. */
export function interpreters(
  programOf: (tool: ToolEntry) => Promise<string>,
): (tool: ToolEntry) => Promise<Interpreter> {
  const asked = new Map<string, Promise<Interpreter>>();
  return async (tool) => {
    const program = await programOf(tool);
    const known = asked.get(program) ?? askInterpreter(tool.runtime, program);
    asked.set(program, known);
    // Asked again after a failure.
    known.catch(() => asked.delete(program));
    return known;
  };
}

/** Asks a program of the host. Throws EnvironmentError. */
export async function askInterpreter(runtime: Runtime, bin: string): Promise<Interpreter> {
  const argv = runtime === "python" ? ["-I", "-c", aboutPython] : ["-e", aboutNode];
  try {
    const { stdout } = await run(bin, argv, { env: {}, cwd: "/", timeout: questionTimeoutMs });
    const answer = JSON.parse(stdout) as Answer;
    const directories = runtime === "node" ? [await realpath(answer.bin)] : answer.directories;
    return {
      ...answer,
      identity: JSON.stringify(answer.identity),
      directories: outermost(directories.filter((path) => !isInEverySandbox(path))),
    };
  } catch (error) {
    throw new EnvironmentError(`the ${runtime} interpreter does not answer`, { cause: error });
  }
}

/** Whether every sandbox has this path. */
export function isInEverySandbox(path: string): boolean {
  return ["/usr", "/bin", "/lib", "/lib64"].some(
    (root) => path === root || path.startsWith(root + sep),
  );
}

/** The paths that lie in no other of them. */
function outermost(paths: readonly string[]): readonly string[] {
  const unique = [...new Set(paths)];
  return unique.filter(
    (path) => !unique.some((other) => other !== path && path.startsWith(other + sep)),
  );
}
