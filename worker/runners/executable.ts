/**
 * Tools that are executables, in any language: program and directory as a sandbox sees them.
 */
import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import type { Profile } from "../sandbox/profile.ts";
import { type SandboxBackend, SandboxError, workDirInside } from "../sandbox/sandbox.ts";
import { workDirNames } from "../sandbox/work/work-dir.ts";
import type { JsonObject } from "../support/json/json.ts";
import { describeProgram } from "./executable/schema.ts";
import { insidePaths } from "./inside-paths.ts";
import { NotRunnableError, examineProgram } from "./executable/program-file.ts";
import type { CodeSource, PreparedTool, ToolRunner } from "./runner.ts";
import { isSystemPath } from "../support/files/system-paths.ts";
import { basePath, hostFiles, toolEnvironment } from "./tool-environment.ts";
import { isIsolated, shareTools } from "./visible-tools.ts";

/** Options of the runner of executables. */
export interface ExecutableRunnerOptions {
  /** Directory with the programs (`TOOLS_EXECUTABLE_DIR`). */
  readonly toolsDir: string;
  readonly backend: Pick<SandboxBackend, "share" | "acquire">;
  /** The worker's environment, for tools whose manifest entry allows them some of it. */
  readonly workerEnvironment: Readonly<Record<string, string | undefined>>;
  /** Of the host, as Node says it; the worker's own unless a test says another. */
  readonly architecture?: string;
}

/** The runner of executables, which can also ask them what their tools are. */
export type ExecutableRunner = ToolRunner & Required<Pick<ToolRunner, "describe">>;

/** A program below the directory of tools; paths are relative to it. */
interface Program {
  readonly file: string;
  /** The directory of the tool, which holds the program. */
  readonly directory: string;
  /** The tool's Python modules, where it has some. */
  readonly pythonDir: string | undefined;
}

/** Opens the runner. There is no interpreter to look at. */
export function openExecutableRunner(
  options: ExecutableRunnerOptions,
): ToolRunner & Required<Pick<ToolRunner, "describe">> {
  return new Executables(options);
}

class Executables implements ToolRunner {
  readonly runtime = "executable";
  readonly description: string;
  readonly sources: readonly CodeSource[];
  readonly #options: ExecutableRunnerOptions;
  readonly #architecture: string;

  constructor(options: ExecutableRunnerOptions) {
    this.#options = options;
    this.#architecture = options.architecture ?? process.arch;
    this.description = `executables for Linux on ${this.#architecture}`;
    this.sources = [{ path: options.toolsDir, depth: "tree" }, ...hostFiles];
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    const { backend, toolsDir, workerEnvironment } = this.#options;
    const { file, directory, pythonDir } = await this.#find(tool).catch((error: unknown) => {
      if (!(error instanceof NotRunnableError)) throw error;
      throw new SandboxError(`${tool.module} ${error.message}`, { cause: error });
    });
    const own = directory === "" ? file : directory;
    const only = isIsolated(tool, profile) ? [own] : undefined;
    const target = insidePaths.executables;
    const tools = await shareTools(backend, { toolsDir, target, only });
    const program = join(target, file);
    const variables: Record<string, string> =
      pythonDir === undefined
        ? {}
        : { PYTHONPATH: join(target, pythonDir), PYTHONDONTWRITEBYTECODE: "1" };
    return {
      mounts: tools.mounts,
      environment: toolEnvironment(tool, [dirname(program)], variables, workerEnvironment),
      // Runtimes such as Go's reserve far more addresses than they use.
      memoryBound: "resident",
      toolsPath: join(target, directory),
      launch: { argv: [program, join(workDirInside, workDirNames.args)] },
      [Symbol.asyncDispose]: () => tools[Symbol.asyncDispose](),
    };
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    try {
      const { file } = await this.#find(tool);
      const path = join(this.#options.toolsDir, file);
      const { interpreter, searched } = await examineProgram(path, this.#architecture);
      await this.#requireInterpreter(tool, interpreter);
      if (searched !== undefined) await requireInPath(searched);
      return undefined;
    } catch (error) {
      if (!(error instanceof NotRunnableError)) throw error;
      return publicRefusal(`${tool.module} ${error.message}`);
    }
  }

  async describe(
    tool: ToolEntry,
    config: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ToolDescription>> {
    return describeProgram(this.#options.backend, (profile) => this.prepare(tool, profile), {
      name: tool.module,
      config,
      signal,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  /** Throws NotRunnableError. */
  async #find({ module, toolDir = "." }: ToolEntry): Promise<Program> {
    const root = await realpath(this.#options.toolsDir);
    const directory = relative(
      this.#options.toolsDir,
      isAbsolute(toolDir) ? toolDir : join(this.#options.toolsDir, toolDir),
    );
    if (directory.split(sep, 1)[0] === "..")
      throw new NotRunnableError("is in a tool_dir that is not below TOOLS_EXECUTABLE_DIR");
    for (const candidate of [module, join("python", "bin", module)]) {
      const file = join(directory, candidate);
      const real = await realpath(join(root, file)).catch(() => undefined);
      if (real === undefined) continue;
      if (!real.startsWith(root + sep))
        throw new NotRunnableError("is a link to outside of the directory of executables");
      if (!(await stat(real)).isFile()) throw new NotRunnableError("is not a file");
      const pythonDir = join(directory, "python");
      const hasPython = await isDirectory(join(root, pythonDir));
      return { file, directory, pythonDir: hasPython ? pythonDir : undefined };
    }
    throw new NotRunnableError("is not there");
  }

  /** Throws NotRunnableError for an interpreter or a loader that sandboxes do not have. */
  async #requireInterpreter({ mounts }: ToolEntry, path: string | undefined): Promise<void> {
    if (path === undefined || mounts.some(({ target }) => isWithin(path, target))) return;
    const isOwn = isWithin(path, insidePaths.executables);
    const onHost = isOwn
      ? join(this.#options.toolsDir, relative(insidePaths.executables, path))
      : path;
    if (!isOwn && !isSystemPath(path))
      throw new NotRunnableError(`needs ${path}, which is no part of sandboxes`);
    if (!(await isFile(onHost)))
      throw new NotRunnableError(`needs ${path}, which this host does not have`);
  }
}

/** Throws NotRunnableError. */
async function requireInPath(program: string): Promise<void> {
  for (const directory of basePath.split(":")) if (await isFile(join(directory, program))) return;
  throw new NotRunnableError(`needs the program "${program}", which sandboxes do not have`);
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory + sep);
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}
