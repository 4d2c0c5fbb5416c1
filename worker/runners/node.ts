/**
 * Node tools: interpreter, tool directory and runner as a sandbox sees them.
 */
import { createRequire } from "node:module";
import { realpath, stat } from "node:fs/promises";
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
import { CompileCaches } from "./compile-cache.ts";
import { type NodeFacts, askNode } from "./node-host.ts";
import type { CodeSource, PreparedTool, ToolRunner } from "./runner.ts";
import { hostFiles, isSystemPath, toolEnvironment } from "./tool-environment.ts";
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
export interface NodeRunnerOptions {
  /** Node program on the host (`SANDBOX_NODE_BIN`). */
  readonly nodeBin: string;
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
  const facts = await askNode(options.nodeBin);
  const { executable } = facts;
  await using shared = new AsyncDisposableStack();
  const mounts: ReadOnlyMount[] = [];
  const mount = async (path: string, ...targets: readonly string[]): Promise<void> => {
    // Shared once: neither program nor runner changes under a running worker.
    const { source } = shared.use(await options.backend.share(path));
    for (const target of targets) mounts.push({ source, target });
  };
  const isSystem = isSystemPath(executable);
  const program = isSystem ? executable : join(insidePaths.interpreter, "node");
  // The program alone: what lies beside it is nobody's business.
  if (!isSystem) await mount(executable, program);
  await mount(options.runnerDir, insidePaths.runner, insidePaths.nodeModule);
  const { source } = shared.use(await options.backend.share(parserDir));
  const describing = [{ source, target: insidePaths.nodeParser }];
  return new NodeRunner({ options, facts, program, mounts, describing, shared: shared.move() });
}

/** What the runner is made of. */
interface NodeParts {
  readonly options: NodeRunnerOptions;
  readonly facts: NodeFacts;
  /** The Node program as it is inside. */
  readonly program: string;
  /** The mounts of every Node tool: the tool runner, and the program where it is not in /usr. */
  readonly mounts: readonly ReadOnlyMount[];
  readonly describing: readonly ReadOnlyMount[];
  readonly shared: AsyncDisposableStack;
}

class NodeRunner implements ToolRunner {
  readonly runtime = "node";
  readonly description: string;
  readonly sources: readonly CodeSource[];
  readonly #options: NodeRunnerOptions;
  readonly #program: string;
  readonly #mounts: readonly ReadOnlyMount[];
  readonly #describing: readonly ReadOnlyMount[];
  readonly #shared: AsyncDisposableStack;
  readonly #caches: CompileCaches;
  /**
   * Of the same modules, made with nothing else in sight: what a module imports is compiled with
   * it.
   */
  readonly #isolatedCaches: CompileCaches;

  constructor({ options, facts, program, mounts, describing, shared }: NodeParts) {
    const { version, executable } = facts;
    this.#options = options;
    this.description = `Node ${version} (${executable})`;
    this.sources = [
      { path: options.toolsDir, depth: "tree" },
      { path: executable, depth: "listing" },
      ...hostFiles,
    ];
    this.#program = program;
    this.#mounts = mounts;
    this.#describing = describing;
    this.#shared = shared;
    this.#caches = this.#newCaches(false);
    this.#isolatedCaches = this.#newCaches(true);
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    await using held = new AsyncDisposableStack();
    const isolated = isIsolated(tool, profile);
    const cache = held.use(await this.#cachesOf(isolated).lease(tool.module));
    const cacheMounts =
      cache === undefined ? [] : [{ source: cache.directory, target: insidePaths.compileCache }];
    const variables: Record<string, string> =
      cache === undefined ? {} : { [cacheVariable]: insidePaths.compileCache };
    const tools = held.use(await this.#share(tool.module, isolated));
    const owned = held.move();
    const argsFile = join(workDirInside, workDirNames.args);
    return {
      mounts: [...this.#mounts, ...tools.mounts, ...cacheMounts],
      environment: this.#environment(tool, variables),
      memoryBound: "resident",
      toolsPath: insidePaths.nodeTools,
      launch: { argv: this.#argv(profile, argsFile) },
      describing: this.#describing,
      park: {
        argv: [
          ...awayFromStdin,
          ...this.#argv(profile, "--park", tool.module, insidePaths.nodeTools, argsFile),
        ],
      },
      boundReached: ranOutOfHeap,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  warm({ module, isolate }: ToolEntry): void {
    void this.#cachesOf(isolate).want(module);
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    return publicRefusal(await this.#moduleProblem(tool));
  }

  async #moduleProblem({ module }: ToolEntry): Promise<string | undefined> {
    const { toolsDir } = this.#options;
    const file = await realpath(join(toolsDir, module)).catch(() => undefined);
    if (file === undefined) return `${module} is not there`;
    if (!file.startsWith((await realpath(toolsDir)) + sep))
      return `${module} is a link to outside of the directory of Node tools`;
    return (await stat(file)).isFile() ? undefined : `${module} is not a file`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#caches[Symbol.asyncDispose]();
    await this.#isolatedCaches[Symbol.asyncDispose]();
    await this.#shared.disposeAsync();
  }

  /**
   * Imports a module in a sandbox of its own, with no network and nothing of a caller, to have Node
   * write what it compiled into `output/`. A module that cannot be imported like that leaves what
   * was compiled until then.
   */
  async #runAhead(
    module: string,
    isolated: boolean,
    take: (left: WorkDir) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(aheadTimeoutMs)]);
    await using tools = await this.#share(module, isolated);
    const output = join(workDirInside, workDirNames.output);
    await using sandbox = await this.#options.backend.acquire(
      {
        profile: aheadProfile,
        memoryBound: "resident",
        mounts: [...this.#mounts, ...tools.mounts],
        devices: [],
        environment: this.#environment({ env: [] }, { [cacheVariable]: output }),
      },
      over,
    );
    const file = join(insidePaths.nodeTools, module);
    const argv = [...lowPriority, ...this.#argv(aheadProfile, "--warm", file, output)];
    const execution = await sandbox.start({ argv });
    const stop = (): void => void execution.stop(0).catch(() => undefined);
    over.addEventListener("abort", stop, { once: true });
    if (over.aborted) stop();
    const { started } = await execution.exited;
    over.throwIfAborted();
    if (!started) throw new SandboxError("the sandbox for the module could not be started");
    await take(sandbox.workDir);
  }

  #newCaches(isolated: boolean): CompileCaches {
    return new CompileCaches({
      ...this.#options,
      // Those of one manifest never displace each other.
      maxModules: maxTools,
      run: (module, take, signal) => this.#runAhead(module, isolated, take, signal),
    });
  }

  #cachesOf(isolated: boolean): CompileCaches {
    return isolated ? this.#isolatedCaches : this.#caches;
  }

  async #share(module: string, isolated: boolean): Promise<SharedTools> {
    const { backend, toolsDir } = this.#options;
    const only = isolated ? await nodeModuleFiles(toolsDir, module) : undefined;
    return shareTools(backend, { toolsDir, target: insidePaths.nodeTools, only });
  }

  #environment(tool: Pick<ToolEntry, "env">, own: Readonly<Record<string, string>>) {
    return toolEnvironment(tool, dirname(this.#program), own, this.#options.workerEnvironment);
  }

  #argv(profile: Profile, ...rest: readonly string[]): readonly string[] {
    return [this.#program, ...flags(profile), join(insidePaths.runner, "main.js"), ...rest];
  }
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
