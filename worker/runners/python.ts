/**
 * Python tools: interpreter, tool directory and runner as a sandbox sees them.
 */
import { chmod, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ToolEntry } from "../manifest/manifest.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import { type SandboxBackend, workDirInside } from "../sandbox/sandbox.ts";
import { insidePaths } from "./inside-paths.ts";
import type { Profile } from "../sandbox/profile.ts";
import { workDirNames } from "../sandbox/work/work-dir.ts";
import { SharedInstallations, installationFor } from "./installations.ts";
import { Interpreters, refuseInterpreter } from "./interpreters.ts";
import { type PreparedPython, type PythonHostOptions, installedPackages } from "./python/host.ts";
import { PythonInterpreter } from "./python/interpreter.ts";
import type { CodeSource, Interpreter, PackageSource, PreparedTool, ToolRunner } from "./runner.ts";
import { type CodePlaces, codeSources, leaseCode } from "./tool-code.ts";
import { hostFiles, packagesVariable, toolEnvironment } from "./tool-environment.ts";
import { byUv, findByUv } from "./python/uv.ts";
import { isIsolated, pythonModuleFiles, shareTools } from "./visible-tools.ts";

/** Options of the Python runner. */
export interface PythonRunnerOptions extends PythonHostOptions, CodePlaces, PackageSource {
  /** Directory with the tools' modules (`TOOLS_PYTHON_DIR`). */
  readonly toolsDir: string;
  readonly backend: Pick<SandboxBackend, "share">;
  /** Others that tools may name, by name (`SANDBOX_PYTHONS`): programs, or {@link byUv}. */
  readonly named?: ReadonlyMap<string, string>;
  /** Program of uv (`PACKAGE_UV_BIN`); it is looked for in the search path otherwise. */
  readonly uvBin?: string | undefined;
  /** Whether uv downloads a version that it lacks (`SANDBOX_PYTHON_DOWNLOADS`). */
  readonly downloadsByUv?: boolean;
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

/**
 * The same where the tool has packages of its own. A program of theirs names the interpreter that
 * installed it: this finds them as packages of its user, behind the standard library.
 */
const variablesWithPackages = {
  ...pythonVariables,
  PYTHONUSERBASE: insidePaths.pythonEnvironment,
  [packagesVariable]: installedPackages,
};

/** Opens the runner, prepared or not. Throws SandboxError. */
export async function openPythonRunner(options: PythonRunnerOptions): Promise<ToolRunner> {
  const { prepared: _, ...others } = options;
  let count = 0;
  const open = async (program: string, name: string): Promise<PythonInterpreter> => {
    const { workerEnvironment: environment, uvBin, downloadsByUv: downloads = false } = options;
    const pythonBin =
      program === byUv ? await findByUv(name, { environment, uvBin, downloads }) : program;
    const scratchDir = join(options.scratchDir, `python-${++count}`);
    await mkdir(scratchDir);
    await chmod(scratchDir, 0o711);
    try {
      return await PythonInterpreter.open({ ...others, pythonBin, scratchDir });
    } catch (error) {
      await rm(scratchDir, { recursive: true, force: true });
      throw error;
    }
  };
  const usual = await PythonInterpreter.open(options);
  const { named } = options;
  const interpreters = new Interpreters({ usual, variable: "SANDBOX_PYTHONS", named, open });
  return new PythonRunner(options, usual, interpreters);
}

class PythonRunner implements ToolRunner {
  readonly runtime = "python";
  readonly description: string;
  readonly #options: PythonRunnerOptions;
  readonly #interpreters: Interpreters<PythonInterpreter>;
  readonly #installations: SharedInstallations;

  constructor(
    options: PythonRunnerOptions,
    usual: PythonInterpreter,
    interpreters: Interpreters<PythonInterpreter>,
  ) {
    const { version, executable } = usual.facts;
    this.#options = options;
    this.#interpreters = interpreters;
    this.#installations = new SharedInstallations(options.backend);
    this.description = `Python ${version} (${executable})`;
  }

  get sources(): readonly CodeSource[] {
    return [...codeSources(this.#options), ...this.#interpreters.sources, ...hostFiles];
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    const { backend, workerEnvironment } = this.#options;
    await using held = new AsyncDisposableStack();
    const installation = installationFor(tool, this.#options);
    const interpreter = await this.#interpreters.of(tool);
    const { executable, mounts } =
      installation === undefined ? interpreter.plain : await interpreter.isolated();
    const code = held.use(leaseCode(tool, this.#options));
    const isolated = isIsolated(tool, profile);
    const only = isolated ? await pythonModuleFiles(code.directory, tool.module) : undefined;
    const target = insidePaths.pythonTools;
    const tools = held.use(await shareTools(backend, { code, target, only }));
    const packages = installation && held.use(await this.#installations.share(installation));
    const owned = held.move();
    // -I: nothing from the environment or the user's home decides what is imported; installed
    // packages stay.
    const runner = [executable, "-I", "-B", join(insidePaths.runner, "tool_runner", "__main__.py")];
    const addsFilter = profile.systemCalls === "strict";
    if (addsFilter) runner.push("--no-programs");
    const argsFile = join(workDirInside, workDirNames.args);
    const ahead = [tool.module, insidePaths.pythonTools, argsFile];
    return {
      mounts: [
        ...mounts,
        ...tools.mounts,
        ...(packages ? [{ source: packages.source, target: insidePaths.installation }] : []),
      ],
      environment: toolEnvironment(
        tool,
        [dirname(executable), ...(packages ? [join(installedPackages, "bin")] : [])],
        packages ? variablesWithPackages : pythonVariables,
        workerEnvironment,
      ),
      memoryBound: "address-space",
      toolsPath: insidePaths.pythonTools,
      launch: { addsFilter, argv: [...runner, argsFile] },
      park: { addsFilter, argv: [...runner, "--park", ...ahead] },
      template: { addsFilter, argv: [...runner, "--template", ...ahead] },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  installationKeyOf(tool: ToolEntry): string | undefined {
    return this.#options.installationOf?.(tool)?.key;
  }

  async interpreterOf(tool: ToolEntry): Promise<Interpreter> {
    return (await this.#interpreters.of(tool)).described;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#installations[Symbol.asyncDispose]();
    await this.#interpreters[Symbol.asyncDispose]();
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    const refusal = await refuseInterpreter(this.#interpreters, tool);
    if (refusal !== undefined) return refusal;
    const covered = coveredBy(tool, await this.#interpreters.of(tool));
    if (covered !== undefined) {
      return {
        reason: covered,
        publicReason: "one of its mounts overlaps the Python interpreter",
      };
    }
    return publicRefusal(await this.#moduleProblem(tool));
  }

  /** The name of a file reads like the module `py` of a package. */
  async #moduleProblem(tool: ToolEntry): Promise<string | undefined> {
    const { module } = tool;
    const name = /^(.+)\.py$/.exec(module)?.[1];
    if (name === undefined) return undefined;
    using code = leaseCode(tool, this.#options);
    if ((await pythonModuleFiles(code.directory, module)).length > 0) return undefined;
    const isFile = (await pythonModuleFiles(code.directory, name)).length > 0;
    return isFile
      ? `module "${module}" is the name of a file; the module in it is called "${name}"`
      : undefined;
  }
}

/** A mount that would take the interpreter's place, or one that finds no room in it. */
function coveredBy({ mounts }: ToolEntry, interpreter: PythonInterpreter): string | undefined {
  for (const { target } of mounts) {
    const own = interpreter.directoryAt(target);
    if (own !== undefined)
      return `mount at ${target} overlaps ${own}, which the Python interpreter needs`;
  }
  return undefined;
}
