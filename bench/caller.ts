/**
 * Makes calls inside a worker's own code, with no broker: whole ones, and what is between a sandbox
 * and its end.
 */
import { watch } from "node:fs";
import { readConfig } from "../worker/config/config.ts";
import type { Invoker } from "../worker/invocation/call-context.ts";
import type { ToolEntry } from "../worker/manifest/manifest.ts";
import type { Invocation, InvocationOutcome } from "../worker/protocol/invocation.ts";
import { maxMessageBytes } from "../worker/protocol/limits.ts";
import { runnerArgs } from "../worker/runners/runner.ts";
import { workDirNames } from "../worker/sandbox/work/work-dir.ts";
import type { Starts, ToolSandbox } from "../worker/pool/starts.ts";
import type { JsonObject } from "../worker/support/json/json.ts";
import { type Logger, createLogger } from "../worker/telemetry/logger.ts";
import { wireInvoker } from "../worker/wiring/calls.ts";
import { type Foundation, openFoundation } from "../worker/wiring/foundation.ts";
import { createHost } from "../worker/wiring/host.ts";
import { type Interpreter, standardProfile } from "./bare.ts";
import { callTimeoutSeconds } from "./environment.ts";
import { type Timing, timingSince } from "./measure.ts";
import { type StockView, statsOf } from "./stock.ts";
import { type BenchTool, nameOf } from "./tools.ts";

/** The outcome of a call that succeeded. */
type Succeeded = Extract<InvocationOutcome, { kind: "success" }>;

/** Everything that a worker has below its broker. Its owner disposes it after the last call. */
export class Caller implements AsyncDisposable {
  readonly stock: StockView;
  readonly #log: Logger;
  readonly #foundation: Foundation;
  readonly #invoker: Invoker;
  readonly #starts: Starts;
  readonly #owned: AsyncDisposable;
  readonly #never = new AbortController().signal;

  private constructor(
    log: Logger,
    foundation: Foundation,
    { invoker, starts }: ReturnType<typeof wireInvoker>,
    owned: AsyncDisposable,
  ) {
    this.#log = log;
    this.#foundation = foundation;
    this.#invoker = invoker;
    this.#starts = starts;
    this.#owned = owned;
    this.stock = () => Promise.resolve(statsOf(starts));
  }

  /** Opens everything that a worker with this environment would. */
  static async open(
    environment: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Caller> {
    await using opened = new AsyncDisposableStack();
    const config = readConfig(environment);
    const host = createHost(createLogger("warn", process.stderr.fd), environment);
    const foundation = opened.use(await openFoundation(config, host, signal));
    const wired = wireInvoker(config, host, foundation);
    opened.use(wired.checker);
    opened.use(wired.starts).follow(foundation.catalog.manifest.tools.values());
    return new Caller(host.log, foundation, wired, opened.move());
  }

  /** A whole call. */
  async invoke(tool: BenchTool): Promise<Timing> {
    const startMs = performance.now();
    const { execution } = await this.call(nameOf(tool));
    return timingSince(startMs, execution?.start);
  }

  /** The same for any tool, with its result. Throws when the call fails. */
  async call(tool: string, args: JsonObject = {}): Promise<Succeeded> {
    const context = {
      signal: this.#never,
      waitSignal: this.#never,
      log: this.#log,
      onStatus: () => undefined,
    };
    const outcome = await this.#invoker.invoke(invocationOf(tool, args), context);
    if (outcome.kind !== "success") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  /**
   * A call from the acquisition of its sandbox to its result or the report of its end, without what
   * comes before and after.
   */
  async invokeInside(tool: BenchTool, until: "result" | "exit"): Promise<Timing> {
    const entry = this.#entryOf(tool);
    let startMs = performance.now();
    await using acquired = await this.acquire(tool);
    const { sandbox } = acquired;
    const acquiredMs = performance.now();
    const { promise: timing, resolve } = Promise.withResolvers<Timing>();
    const timed = (): void => resolve(timingSince(startMs, acquired.startMode));
    using _watched = until === "result" ? onResult(sandbox.workDir.path, timed) : undefined;
    startMs += performance.now() - acquiredMs;
    const paths = {
      tools: acquired.tool.toolsPath,
      locate: (path: string) => sandbox.locate(path),
    };
    const limits = { maxResultBytes: maxMessageBytes };
    const args = runnerArgs(entry, invocationOf(nameOf(tool)), new Map(), paths, limits);
    using _statuses = sandbox.workDir.readStatuses(() => undefined);
    const execution = await acquired.start(JSON.stringify(args));
    const { exitCode, stderr, result } = await execution.exited;
    if (until === "exit") await execution.stop(0);
    if (until === "exit" || result !== undefined) timed();
    if (exitCode !== 0) throw new Error(`${nameOf(tool)}: ${stderr.text}`);
    return await timing;
  }

  /** A sandbox for a call; the caller owns it. */
  acquire(tool: BenchTool): Promise<ToolSandbox> {
    return this.#starts.acquire(this.#entryOf(tool), standardProfile(), this.#never);
  }

  /**
   * The interpreter of a tool's language, and what its sandboxes mount. The caller disposes it
   * after its last sandbox.
   */
  async interpreterOf(tool: BenchTool): Promise<Interpreter & AsyncDisposable> {
    const entry = this.#entryOf(tool);
    const runner = this.#foundation.runners.get(entry.runtime);
    if (runner === undefined) throw new Error(`no runner for ${entry.runtime}`);
    const prepared = await runner.prepare(entry, standardProfile());
    const [program = ""] = prepared.launch.argv;
    return {
      program,
      mounts: prepared.mounts,
      [Symbol.asyncDispose]: () => prepared[Symbol.asyncDispose](),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }

  #entryOf(tool: BenchTool): ToolEntry {
    const entry = this.#foundation.catalog.resolve(nameOf(tool));
    if (entry === undefined) throw new Error(`${nameOf(tool)} is not served`);
    return entry;
  }
}

/** Tells, by events of the file system, when the result is in its place. The caller ends it. */
function onResult(workDir: string, tell: () => void): Disposable {
  const watcher = watch(workDir, (_, name) => {
    if (name === workDirNames.result) tell();
  });
  return { [Symbol.dispose]: () => watcher.close() };
}

/** A call as the handler hands it to the invoker. */
function invocationOf(toolName: string, args: JsonObject = {}): Invocation {
  return {
    id: "bench",
    taskId: "bench",
    toolName,
    args,
    toolConfig: {},
    caller: { appName: "bench", userId: "bench", sessionId: "bench" },
    references: new Map(),
    preloaded: new Map(),
    timeoutSeconds: callTimeoutSeconds,
    requestedProfile: undefined,
    replyTo: "bench",
    statusTo: undefined,
    sentAtMs: Date.now(),
  };
}
