/**
 * Python tools: interpreter, tool directory and runner as a sandbox sees them.
 */
import { dirname, join, sep } from "node:path";
import type { ToolEntry } from "../manifest/manifest.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import { type ReadOnlyMount, type SandboxBackend, workDirInside } from "../sandbox/sandbox.ts";
import { insidePaths } from "./inside-paths.ts";
import type { Profile } from "../sandbox/profile.ts";
import { workDirNames } from "../sandbox/work/work-dir.ts";
import { type PreparedPython, type PythonHostOptions, preparePython } from "./python-host.ts";
import type { CodeSource, PreparedTool, ToolRunner } from "./runner.ts";
import { hostFiles, isSystemPath, toolEnvironment } from "./tool-environment.ts";
import { isIsolated, pythonModuleFiles, shareTools } from "./visible-tools.ts";

/** Options of the Python runner. */
export interface PythonRunnerOptions extends PythonHostOptions {
  /** Directory with the tools' modules (`TOOLS_PYTHON_DIR`). */
  readonly toolsDir: string;
  readonly backend: Pick<SandboxBackend, "share">;
  /** The worker's environment, for tools whose manifest entry allows them some of it. */
  readonly workerEnvironment: Readonly<Record<string, string | undefined>>;
  /** Of the same options, where it was started before. */
  readonly prepared?: Promise<PreparedPython> | undefined;
}

/** For Python programs that a tool starts; the runner itself is isolated from them. */
const pythonVariables = {
  PYTHONPATH: insidePaths.pythonTools,
  PYTHONDONTWRITEBYTECODE: "1",
};

/** Opens the runner, prepared or not. Throws SandboxError. */
export async function openPythonRunner(options: PythonRunnerOptions): Promise<ToolRunner> {
  const { facts, compiledDir } = await (options.prepared ?? preparePython(options));
  await using shared = new AsyncDisposableStack();
  const interpreterMounts: ReadOnlyMount[] = [];
  for (const target of outermost(facts.directories.filter((path) => !isSystemPath(path)))) {
    // Shared once: an interpreter does not change under a running worker, and has tens of thousands
    // of files.
    const { source } = shared.use(await options.backend.share(target));
    interpreterMounts.push({ source, target });
  }
  const mounts = [...interpreterMounts, { source: compiledDir, target: insidePaths.runner }];
  return new PythonRunner(options, facts, mounts, shared.move());
}

class PythonRunner implements ToolRunner {
  readonly runtime = "python";
  readonly description: string;
  readonly sources: readonly CodeSource[];
  readonly #options: PythonRunnerOptions;
  readonly #executable: string;
  /**
   * What every Python tool sees: the tool runner, and interpreter directories outside /usr (venv,
   * pyenv, /opt).
   */
  readonly #mounts: readonly ReadOnlyMount[];
  readonly #shared: AsyncDisposableStack;

  constructor(
    options: PythonRunnerOptions,
    facts: PreparedPython["facts"],
    mounts: readonly ReadOnlyMount[],
    shared: AsyncDisposableStack,
  ) {
    this.#options = options;
    this.#executable = facts.executable;
    this.#mounts = mounts;
    this.#shared = shared;
    this.description = `Python ${facts.version} (${facts.executable})`;
    const { installed, added } = facts;
    this.sources = [
      ...[options.toolsDir, ...added].map((path) => ({ path, depth: "tree" as const })),
      ...[facts.executable, ...installed].map((path) => ({ path, depth: "listing" as const })),
      ...hostFiles,
    ];
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    const { backend, toolsDir, workerEnvironment } = this.#options;
    const tools = await shareTools(backend, {
      toolsDir,
      target: insidePaths.pythonTools,
      only: isIsolated(tool, profile) ? await pythonModuleFiles(toolsDir, tool.module) : undefined,
    });
    // -I: nothing from the environment or the user's home decides what is imported; installed
    // packages stay.
    const runner = [
      this.#executable,
      "-I",
      "-B",
      join(insidePaths.runner, "tool_runner", "__main__.py"),
    ];
    const argsFile = join(workDirInside, workDirNames.args);
    return {
      mounts: [...this.#mounts, ...tools.mounts],
      environment: toolEnvironment(
        tool,
        dirname(this.#executable),
        pythonVariables,
        workerEnvironment,
      ),
      memoryBound: "address-space",
      toolsPath: insidePaths.pythonTools,
      launch: { argv: [...runner, argsFile] },
      park: { argv: [...runner, "--park", tool.module, insidePaths.pythonTools, argsFile] },
      template: { argv: [...runner, "--template", tool.module, insidePaths.pythonTools, argsFile] },
      [Symbol.asyncDispose]: () => tools[Symbol.asyncDispose](),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared.disposeAsync();
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    const covered = this.#covered(tool);
    if (covered !== undefined) {
      return {
        reason: covered,
        publicReason: "one of its mounts overlaps the Python interpreter",
      };
    }
    return publicRefusal(await this.#moduleProblem(tool));
  }

  /** The name of a file reads like the module `py` of a package. */
  async #moduleProblem({ module }: ToolEntry): Promise<string | undefined> {
    const { toolsDir } = this.#options;
    const name = /^(.+)\.py$/.exec(module)?.[1];
    if (name === undefined || (await pythonModuleFiles(toolsDir, module)).length > 0)
      return undefined;
    const isFile = (await pythonModuleFiles(toolsDir, name)).length > 0;
    return isFile
      ? `module "${module}" is the name of a file; the module in it is called "${name}"`
      : undefined;
  }

  /** A mount that would take the interpreter's place, or one that finds no room in it. */
  #covered({ mounts }: ToolEntry): string | undefined {
    for (const { target } of mounts) {
      const own = this.#mounts.find(
        (mount) =>
          mount.target === target || isBelow(mount.target, target) || isBelow(target, mount.target),
      );
      if (own !== undefined)
        return `mount at ${target} overlaps ${own.target}, which the Python interpreter needs`;
    }
    return undefined;
  }
}

/** The paths that lie in no other of them. */
function outermost(paths: readonly string[]): readonly string[] {
  const unique = [...new Set(paths)];
  return unique.filter((path) => !unique.some((other) => other !== path && isBelow(path, other)));
}

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory + sep);
}
