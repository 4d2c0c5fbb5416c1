/**
 * Node tools: interpreter, tool directory and runner as a sandbox sees them.
 */
import { chmod, lstat, mkdir, realpath, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import type { LimitName } from "../protocol/resource-limits.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { maxTools } from "../manifest/schema.ts";
import { type Profile, restrictiveProfile } from "../sandbox/profile.ts";
import {
  type ExitReport,
  type ReadOnlyMount,
  type SandboxBackend,
  SandboxError,
  workDirInside,
} from "../sandbox/sandbox.ts";
import { insidePaths } from "./inside-paths.ts";
import { type WorkDir, workDirNames } from "../sandbox/work/work-dir.ts";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Compilation, CompileCaches } from "./compile-cache.ts";
import { SharedInstallations } from "./installations.ts";
import { Interpreters, refuseInterpreter } from "./interpreters.ts";
import { NodeProgram } from "./node-program.ts";
import type {
  CodeSource,
  Installation,
  InstallationOf,
  Interpreter,
  PreparedTool,
  ToolRunner,
} from "./runner.ts";
import { type CodeLease, type CodePlaces, codeSources, leaseCode } from "./tool-code.ts";
import { hostFiles, packagesVariable, toolEnvironment } from "./tool-environment.ts";
import { isIsolated, nodeModuleFiles, shareTools, type SharedTools } from "./visible-tools.ts";

const bytesPerMebibyte = 1024 * 1024;

/**
 * The part of a profile's memory that JavaScript objects may take. V8 goes beyond its limit by its
 * young generation and by what it copies while it collects; the rest is also for buffers and for
 * processes that a tool starts.
 */
const heapShare = 0.75;

/**
 * Where Node looks for compiled code, and puts it where it can; see `module.enableCompileCache` of
 * Node.
 */
const cacheVariable = "NODE_COMPILE_CACHE";
/** The package `@babel/parser`, which only the runner inside loads, to describe a tool. */
const parserDir = dirname(createRequire(import.meta.url).resolve("@babel/parser/package.json"));
/** Where Node looks for packages. */
const modulesName = "node_modules";
/** What modules are compiled ahead in. */
const aheadProfile = restrictiveProfile;
/**
 * Moves the socket to the worker from descriptor 0 to 3, and has nothing on standard input: Node
 * cannot do that later, and a module that imports `node:process` opens its standard input. What
 * shells add to the environment is taken out again.
 */
export const awayFromStdin: readonly string[] = [
  ...["/bin/sh", "-c", 'exec "$@" 3<&0 </dev/null', "sh"],
  ...["/usr/bin/env", "-u", "_", "-u", "SHLVL", "-u", "OLDPWD"],
];
/** Calls come first. */
const lowPriority = ["/usr/bin/nice", "-n", "19"];
/** Milliseconds that a module may take to be imported ahead. */
const aheadTimeoutMs = 60_000;

/** Options of the Node runner. */
export interface NodeRunnerOptions extends CodePlaces {
  /** Node program on the host (`SANDBOX_NODE_BIN`). */
  readonly nodeBin: string;
  /** Others that tools may name, by name (`SANDBOX_NODES`). */
  readonly named?: ReadonlyMap<string, string>;
  /** Packages of tools; without it no tool has any of its own. */
  readonly installationOf?: InstallationOf;
  /** Directory with the tools' modules (`TOOLS_NODE_DIR`). */
  readonly toolsDir: string;
  /** The project's `tool-runner/node`. */
  readonly runnerDir: string;
  /** Directory for this process alone, which sandboxes can reach; its owner removes it. */
  readonly scratchDir: string;
  readonly backend: Pick<SandboxBackend, "share" | "acquire">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly newId: NewId;
  readonly log: Logger;
  /** The worker's environment, for tools whose manifest entry allows them some of it. */
  readonly workerEnvironment: Readonly<Record<string, string | undefined>>;
}

/** Opens the runner: asks the Node program who it is. Throws SandboxError. */
export async function openNodeRunner(options: NodeRunnerOptions): Promise<ToolRunner> {
  const { backend, nodeBin, runnerDir, scratchDir, named } = options;
  await using shared = new AsyncDisposableStack();
  const open = (program: string) => NodeProgram.open(program, backend);
  const usual = await open(nodeBin);
  const programs = shared.use(new Interpreters({ usual, variable: "SANDBOX_NODES", named, open }));
  const installations = shared.use(new SharedInstallations(backend));
  // Shared once: it does not change under a running worker.
  const { source } = shared.use(await backend.share(runnerDir));
  const emptyDir = join(scratchDir, "no-packages");
  await mkdir(emptyDir, { recursive: true });
  // mkdir's mode is subject to the umask.
  await chmod(emptyDir, 0o755);
  const { source: parserSource } = shared.use(await backend.share(parserDir));
  const describing = [{ source: parserSource, target: insidePaths.nodeParser }];
  const parts = { options, programs, installations, runnerSource: source, describing, emptyDir };
  return new NodeRunner(parts, usual, shared.move());
}

/** What the runner is made of. */
interface NodeParts {
  readonly options: NodeRunnerOptions;
  readonly programs: Interpreters<NodeProgram>;
  readonly installations: SharedInstallations;
  readonly runnerSource: string;
  /** What a sandbox has besides where it describes a tool. */
  readonly describing: readonly ReadOnlyMount[];
  readonly emptyDir: string;
}

/** What of a tool decides on how its module is compiled. */
interface Surroundings extends Compilation {
  readonly program: NodeProgram;
  readonly isolated: boolean;
  readonly installation: Installation | undefined;
}

class NodeRunner implements ToolRunner {
  readonly runtime = "node";
  readonly description: string;
  readonly #options: NodeRunnerOptions;
  readonly #parts: NodeParts;
  /** The tool runner. */
  readonly #mounts: readonly ReadOnlyMount[];
  readonly #shared: AsyncDisposable;
  readonly #caches: CompileCaches<Surroundings>;

  constructor(parts: NodeParts, usual: NodeProgram, shared: AsyncDisposable) {
    const { options, runnerSource: source } = parts;
    this.#options = options;
    this.#parts = parts;
    this.description = `Node ${usual.version} (${usual.hostExecutable})`;
    this.#mounts = [insidePaths.runner, insidePaths.nodeModule].map((target) => ({
      source,
      target,
    }));
    this.#shared = shared;
    this.#caches = new CompileCaches({
      ...options,
      // Those of one manifest never displace each other: a module has two under some overrides.
      maxModules: 2 * maxTools,
      run: (of, take, signal) => this.#runAhead(of, take, signal),
    });
  }

  get sources(): readonly CodeSource[] {
    return [...codeSources(this.#options), ...this.#parts.programs.sources, ...hostFiles];
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    await using held = new AsyncDisposableStack();
    const of = await this.#surroundingsOf(tool, isIsolated(tool, profile));
    // Code compiled ahead is that of the directory of tools.
    const cache = tool.toolset === undefined ? held.use(await this.#caches.lease(of)) : undefined;
    const cacheMounts =
      cache === undefined ? [] : [{ source: cache.directory, target: insidePaths.compileCache }];
    const variables: Record<string, string> =
      cache === undefined ? {} : { [cacheVariable]: insidePaths.compileCache };
    const code = held.use(leaseCode(tool, this.#options));
    const visible = held.use(await this.#share(of, code));
    const owned = held.move();
    const argsFile = join(workDirInside, workDirNames.args);
    const argv = (...rest: readonly string[]) => argvOf(of.program, profile, ...rest);
    return {
      mounts: [...visible.mounts, ...cacheMounts],
      environment: this.#environment(tool, of, variables),
      memoryBound: "resident",
      toolsPath: insidePaths.nodeTools,
      launch: { argv: argv(argsFile) },
      describing: this.#parts.describing,
      park: {
        argv: [...awayFromStdin, ...argv("--park", tool.module, insidePaths.nodeTools, argsFile)],
      },
      boundReached: ranOutOfHeap,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  warm(tool: ToolEntry): void {
    if (tool.toolset !== undefined) return;
    // Where its program cannot be used, its calls say so.
    void this.#surroundingsOf(tool, tool.isolate).then(
      (of) => this.#caches.want(of),
      () => undefined,
    );
  }

  installationKeyOf(tool: ToolEntry): string | undefined {
    return this.#options.installationOf?.(tool)?.key;
  }

  async interpreterOf(tool: ToolEntry): Promise<Interpreter> {
    return (await this.#parts.programs.of(tool)).describe();
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    return (
      (await refuseInterpreter(this.#parts.programs, tool)) ??
      publicRefusal(await this.#moduleProblem(tool))
    );
  }

  async #moduleProblem(tool: ToolEntry): Promise<string | undefined> {
    const { module } = tool;
    using code = leaseCode(tool, this.#options);
    const file = await realpath(join(code.directory, module)).catch(() => undefined);
    if (file === undefined) return `${module} is not there`;
    if (!file.startsWith((await realpath(code.directory)) + sep))
      return `${module} is a link to outside of the directory of Node tools`;
    return (await stat(file)).isFile() ? undefined : `${module} is not a file`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#caches[Symbol.asyncDispose]();
    await this.#shared[Symbol.asyncDispose]();
  }

  /**
   * Imports a module in a sandbox of its own, with no network and nothing of a caller, to have Node
   * write what it compiled into `output/`. A module that cannot be imported like that leaves what
   * was compiled until then.
   */
  async #runAhead(
    of: Surroundings,
    take: (left: WorkDir) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(aheadTimeoutMs)]);
    using code = leaseCode({}, this.#options);
    await using visible = await this.#share(of, code);
    const output = join(workDirInside, workDirNames.output);
    await using sandbox = await this.#options.backend.acquire(
      {
        profile: aheadProfile,
        memoryBound: "resident",
        mounts: visible.mounts,
        devices: [],
        environment: this.#environment({ env: [] }, of, { [cacheVariable]: output }),
      },
      over,
    );
    const file = join(insidePaths.nodeTools, of.module);
    const argv = [...lowPriority, ...argvOf(of.program, aheadProfile, "--warm", file, output)];
    const execution = await sandbox.start({ argv });
    const stop = (): void => void execution.stop(0).catch(() => undefined);
    over.addEventListener("abort", stop, { once: true });
    if (over.aborted) stop();
    const { started } = await execution.exited;
    over.throwIfAborted();
    if (!started) throw new SandboxError("the sandbox for the module could not be started");
    await take(sandbox.workDir);
  }

  async #surroundingsOf(tool: ToolEntry, isolated: boolean): Promise<Surroundings> {
    const program = await this.#parts.programs.of(tool);
    const installation = this.#options.installationOf?.(tool);
    const variant = [isolated, program.program, installation?.key].join("\0");
    return { module: tool.module, variant, program, isolated, installation };
  }

  /** All that a call mounts, but for compiled code. */
  async #share(
    { module, program, isolated, installation }: Surroundings,
    code: CodeLease,
  ): Promise<SharedTools> {
    const { backend } = this.#options;
    await using held = new AsyncDisposableStack();
    const only = isolated ? await nodeModuleFiles(code.directory, module) : undefined;
    const tools = await shareTools(backend, { code, target: insidePaths.nodeTools, only });
    held.use(tools);
    const packages = installation && held.use(await this.#parts.installations.share(installation));
    const packageMounts =
      packages === undefined
        ? []
        : [
            { source: join(packages.source, modulesName), target: insidePaths.nodePackages },
            ...(isolated ? [] : await this.#hideOthers(code)),
          ];
    const owned = held.move();
    return {
      mounts: [...program.mounts, ...this.#mounts, ...tools.mounts, ...packageMounts],
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  /** Nothing in place of the packages beside the tools, which Node would prefer. */
  async #hideOthers({ directory }: CodeLease): Promise<readonly ReadOnlyMount[]> {
    const stats = await lstat(join(directory, modulesName)).catch(() => undefined);
    const target = join(insidePaths.nodeTools, modulesName);
    return stats?.isDirectory() === true ? [{ source: this.#parts.emptyDir, target }] : [];
  }

  #environment(
    tool: Pick<ToolEntry, "env">,
    { program, installation }: Surroundings,
    own: Readonly<Record<string, string>>,
  ) {
    const { nodePackages } = insidePaths;
    const directories = [dirname(program.executable)];
    if (installation !== undefined) directories.push(join(nodePackages, ".bin"));
    const variables = installation && { [packagesVariable]: nodePackages };
    const { workerEnvironment } = this.#options;
    return toolEnvironment(tool, directories, { ...own, ...variables }, workerEnvironment);
  }
}

function argvOf(
  { executable }: NodeProgram,
  profile: Profile,
  ...rest: readonly string[]
): readonly string[] {
  return [executable, ...flags(profile), join(insidePaths.runner, "main.js"), ...rest];
}

function flags({ limits }: Profile): readonly string[] {
  const heapMebibytes = Math.floor((limits.memoryBytes * heapShare) / bytesPerMebibyte);
  return [
    `--max-old-space-size=${heapMebibytes}`,
    // No signal opens a debugger on the network that a tool may share with the host.
    "--disable-sigusr1",
  ];
}

/** V8 has no exception for a full heap: it says so, in Node's words or in its own, and aborts. */
function ranOutOfHeap({ signal, stderr }: ExitReport): LimitName | undefined {
  const hasSaidSo = /^(?:FATAL ERROR:|# Fatal) .*\bout of memory\b/m.test(stderr.text);
  return signal !== undefined && hasSaidSo ? "memoryBytes" : undefined;
}
