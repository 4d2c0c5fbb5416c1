/**
 * Python tools: interpreter, tool directory and runner as a sandbox sees them.
 */
import { execFile } from "node:child_process";
import { dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { satisfies } from "@renovatebot/pep440";
import { z } from "zod";
import type { ToolEntry } from "../manifest/manifest.ts";
import {
  type SandboxBackend,
  SandboxError,
  type SharedDirectory,
  insidePaths,
} from "../sandbox/sandbox.ts";
import { workDirNames } from "../sandbox/work-dir.ts";
import type { PreparedTool, ToolRunner } from "./runner.ts";

const run = promisify(execFile);

/** Milliseconds the interpreter may take to answer a question about itself. */
const questionTimeoutMs = 30_000;

/** Where programs are looked for inside. */
const basePath = "/usr/local/bin:/usr/bin:/bin";

/** Options of the Python runner. */
export interface PythonRunnerOptions {
  /** Interpreter on the host (`SANDBOX_PYTHON_BIN`). */
  readonly pythonBin: string;
  /** Directory with the tools' modules (`TOOLS_PYTHON_DIR`). */
  readonly toolsDir: string;
  /** The project's `tool-runner/python`. */
  readonly runnerDir: string;
  readonly backend: Pick<SandboxBackend, "share">;
  /** The worker's environment, for tools whose manifest entry allows them some of it. */
  readonly workerEnvironment: Readonly<Record<string, string | undefined>>;
}

const interpreterFacts = z.object({
  version: z.string(),
  executable: z.string(),
  directories: z.array(z.string()),
});

/** Asks an interpreter what it consists of: everything it imports from must be visible inside. */
const aboutItself = `
import json, os, sys
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
print(json.dumps({
    "version": sys.version.split()[0],
    "executable": sys.executable,
    "directories": [p for p in paths if os.path.isdir(p)],
}))`;

/** Looks a package up without importing it. */
const aboutPackage = `
import importlib.metadata, importlib.util, json, sys
name = sys.argv[1]
try:
    version = importlib.metadata.version(name)
except importlib.metadata.PackageNotFoundError:
    version = None
found = version is not None or importlib.util.find_spec(name.replace("-", "_")) is not None
print(json.dumps({"found": found, "version": version}))`;

const packageFacts = z.object({ found: z.boolean(), version: z.string().nullable() });

/** Opens the runner: starts the interpreter once to learn about it. Throws SandboxError when it cannot be used. */
export async function openPythonRunner(options: PythonRunnerOptions): Promise<ToolRunner> {
  const facts = await askInterpreter(options.pythonBin);
  return new PythonRunner(options, facts);
}

async function askInterpreter(pythonBin: string): Promise<z.infer<typeof interpreterFacts>> {
  try {
    const { stdout } = await run(pythonBin, ["-I", "-c", aboutItself], {
      env: {},
      timeout: questionTimeoutMs,
    });
    return interpreterFacts.parse(JSON.parse(stdout));
  } catch (error) {
    throw new SandboxError(`cannot use ${pythonBin} as the Python interpreter`, { cause: error });
  }
}

class PythonRunner implements ToolRunner {
  readonly runtime = "python";
  readonly description: string;
  readonly #options: PythonRunnerOptions;
  readonly #executable: string;
  /** Directories outside /usr that the interpreter needs: a virtual environment, pyenv, /opt. */
  readonly #interpreterDirectories: readonly string[];

  constructor(options: PythonRunnerOptions, facts: z.infer<typeof interpreterFacts>) {
    this.#options = options;
    this.#executable = facts.executable;
    this.#interpreterDirectories = outermost(
      facts.directories.filter((path) => !isSystemPath(path)),
    );
    this.description = `Python ${facts.version} (${facts.executable})`;
  }

  async prepare(tool: ToolEntry): Promise<PreparedTool> {
    const { backend, toolsDir, runnerDir } = this.#options;
    await using shared = new AsyncDisposableStack();
    const mount = async (directory: string, target: string) => {
      const { source } = shared.use<SharedDirectory>(await backend.share(directory));
      return { source, target };
    };
    const mounts = [
      ...(await Promise.all(this.#interpreterDirectories.map((path) => mount(path, path)))),
      await mount(toolsDir, insidePaths.pythonTools),
      await mount(runnerDir, insidePaths.runner),
    ];
    const owned = shared.move();
    return {
      mounts,
      environment: this.#environment(tool),
      launch: {
        // -I: nothing from the environment or the user's home decides what is imported; installed packages stay.
        argv: [
          this.#executable,
          "-I",
          "-B",
          join(insidePaths.runner, "tool_runner"),
          join(insidePaths.work, workDirNames.args),
        ],
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  async refuse(tool: ToolEntry, signal: AbortSignal): Promise<string | undefined> {
    if (tool.package === undefined) return undefined;
    const { name, version } = tool.package;
    const { stdout } = await run(this.#executable, ["-I", "-c", aboutPackage, name], {
      env: {},
      timeout: questionTimeoutMs,
      signal,
    });
    const facts = packageFacts.parse(JSON.parse(stdout));
    if (!facts.found) return `package "${name}" is not installed`;
    if (version === undefined || facts.version === null || satisfies(facts.version, version))
      return undefined;
    return `package "${name}" is installed in version ${facts.version}, the manifest wants ${version}`;
  }

  #environment(tool: ToolEntry): ReadonlyMap<string, string> {
    const bin = dirname(this.#executable);
    const environment = new Map([
      ["PATH", isSystemPath(bin) ? basePath : `${bin}:${basePath}`],
      ["HOME", "/tmp"],
      ["TMPDIR", "/tmp"],
      ["LANG", "C.UTF-8"],
      // For Python programs that a tool starts; the runner itself is isolated from it.
      ["PYTHONPATH", insidePaths.pythonTools],
      ["PYTHONDONTWRITEBYTECODE", "1"],
    ]);
    for (const name of tool.env) {
      const value = this.#options.workerEnvironment[name];
      if (value !== undefined) environment.set(name, value);
    }
    return environment;
  }
}

/** Whether every sandbox has this path anyway. */
function isSystemPath(path: string): boolean {
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
