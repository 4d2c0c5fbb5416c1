/**
 * Node tools: how they are launched, and the compiled code of their modules.
 */
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import type { LimitName } from "../protocol/resource-limits.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { maxTools } from "../manifest/schema.ts";
import { type Profile, restrictiveProfile } from "../sandbox/profile.ts";
import {
  type ExitReport,
  type SandboxBackend,
  SandboxError,
  workDirInside,
} from "../sandbox/sandbox.ts";
import { insidePaths } from "./inside-paths.ts";
import { type WorkDir, workDirNames } from "../sandbox/work/work-dir.ts";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import type { Logger } from "../telemetry/logger.ts";
import { CompileCaches, fileFingerprint } from "./node/compile-cache.ts";
import { refuseInterpreter } from "./interpreters.ts";
import {
  NodeSurroundings,
  type NodeSurroundingsOptions,
  type Surroundings,
  argvOf,
  forkFlags,
} from "./node/surroundings.ts";
import type { CodeSource, Interpreter, PreparedTool, ToolRunner } from "./runner.ts";
import { codeSources, leaseCode } from "./tool-code.ts";
import { hostFiles } from "./tool-environment.ts";
import { isIsolated } from "./visible-tools.ts";

/**
 * Where Node looks for compiled code, and puts it where it can; see `module.enableCompileCache` of
 * Node.
 */
const cacheVariable = "NODE_COMPILE_CACHE";
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
export interface NodeRunnerOptions extends NodeSurroundingsOptions {
  readonly backend: Pick<SandboxBackend, "share" | "acquire">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly newId: NewId;
  readonly log: Logger;
}

/** Opens the runner: asks the Node program who it is. Throws SandboxError. */
export async function openNodeRunner(options: NodeRunnerOptions): Promise<ToolRunner> {
  return new NodeRunner(options, await NodeSurroundings.open(options));
}

class NodeRunner implements ToolRunner {
  readonly runtime = "node";
  readonly #options: NodeRunnerOptions;
  readonly #surroundings: NodeSurroundings;
  readonly #caches: CompileCaches<Surroundings>;
  /** Of the surroundings, by tools. */
  readonly #states = new Map<string, string>();

  constructor(options: NodeRunnerOptions, surroundings: NodeSurroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#caches = new CompileCaches({
      ...options,
      // Those of one manifest never displace each other: a module has two under some overrides.
      maxModules: 2 * maxTools,
      fingerprintOf: async (of) => {
        if (of.module === "") throw new Error("programs come with their calls");
        using code = leaseCode(of, options);
        return await fileFingerprint(join(code.directory, of.module));
      },
      run: (of, take, signal) => this.#runAhead(of, take, signal),
    });
  }

  get description(): string {
    const { version, hostExecutable } = this.#surroundings.usual;
    return `Node ${version} (${hostExecutable})`;
  }

  get sources(): readonly CodeSource[] {
    return [...codeSources(this.#options), ...this.#surroundings.programs.sources, ...hostFiles];
  }

  async prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool> {
    await using held = new AsyncDisposableStack();
    const of = await this.#surroundingsOf(tool, isIsolated(tool, profile));
    const cache = held.use(await this.#caches.lease(of));
    const cacheMounts =
      cache === undefined ? [] : [{ source: cache.directory, target: insidePaths.compileCache }];
    const variables: Record<string, string> =
      cache === undefined ? {} : { [cacheVariable]: insidePaths.compileCache };
    const visible = held.use(await this.#surroundings.share(of));
    const owned = held.move();
    const argsFile = join(workDirInside, workDirNames.args);
    const ahead = (way: string, flags: readonly string[] = []) => {
      const rest = [way, tool.module, insidePaths.nodeTools, argsFile];
      return { argv: [...awayFromStdin, ...argvOf(of, profile, rest, flags)] };
    };
    return {
      mounts: [...visible.mounts, ...cacheMounts],
      environment: this.#surroundings.environment(tool, of, variables),
      memoryBound: "resident",
      toolsPath: insidePaths.nodeTools,
      launch: { argv: argvOf(of, profile, [argsFile]) },
      describing: this.#surroundings.describing,
      park: ahead("--park"),
      template: ahead("--template", forkFlags),
      boundReached: ranOutOfHeap,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  warm(tool: ToolEntry): void {
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
    return (await this.#surroundings.programs.of(tool)).describe();
  }

  async refuse(tool: ToolEntry): Promise<Refusal | undefined> {
    return (
      (await refuseInterpreter(this.#surroundings.programs, tool)) ??
      publicRefusal(await this.#moduleProblem(tool))
    );
  }

  async #moduleProblem(tool: ToolEntry): Promise<string | undefined> {
    const { module } = tool;
    if (tool.callable.kind === "code") return undefined;
    using code = leaseCode(tool, this.#options);
    const file = await realpath(join(code.directory, module)).catch(() => undefined);
    if (file === undefined) return `${module} is not there`;
    if (!file.startsWith((await realpath(code.directory)) + sep))
      return `${module} is a link to outside of the directory of Node tools`;
    return (await stat(file)).isFile() ? undefined : `${module} is not a file`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#caches[Symbol.asyncDispose]();
    await this.#surroundings[Symbol.asyncDispose]();
  }

  async #surroundingsOf(tool: ToolEntry, isolated: boolean): Promise<Surroundings> {
    const of = await this.#surroundings.of(tool, isolated);
    const former = this.#states.get(tool.name);
    this.#states.set(tool.name, of.state);
    if (former !== of.state && ![...this.#states.values()].some((state) => state === former))
      this.#caches.drop(({ state }) => state === former);
    return of;
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
    await using visible = await this.#surroundings.share(of);
    const output = join(workDirInside, workDirNames.output);
    await using sandbox = await this.#options.backend.acquire(
      {
        profile: aheadProfile,
        memoryBound: "resident",
        mounts: visible.mounts,
        devices: [],
        environment: this.#surroundings.environment({ env: [] }, of, { [cacheVariable]: output }),
      },
      over,
    );
    const file = join(insidePaths.nodeTools, of.module);
    const argv = [...lowPriority, ...argvOf(of, aheadProfile, ["--warm", file, output])];
    const execution = await sandbox.start({ argv }, over);
    const stop = (): void => void execution.stop(0).catch(() => undefined);
    over.addEventListener("abort", stop, { once: true });
    if (over.aborted) stop();
    const { started } = await execution.exited;
    over.throwIfAborted();
    if (!started) throw new SandboxError("the sandbox for the module could not be started");
    await take(sandbox.workDir);
  }
}

/** V8 has no exception for a full heap: it says so, in Node's words or in its own, and aborts. */
function ranOutOfHeap({ signal, stderr }: ExitReport): LimitName | undefined {
  const hasSaidSo = /^(?:FATAL ERROR:|# Fatal) .*\bout of memory\b/m.test(stderr.text);
  return signal !== undefined && hasSaidSo ? "memoryBytes" : undefined;
}
