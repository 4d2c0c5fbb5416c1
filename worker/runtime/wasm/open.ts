/**
 * The backend `wasm`: QuickJS in WebAssembly, in threads of this process. Programs have no files,
 * no network and no processes; all that they reach are their own memory and the gateway.
 */
import { createFunctionGateway } from "../../gateway/functions.ts";
import { maxCodeBytes } from "../../protocol/tool-calls/program-limits.ts";
import type { ToolGateway } from "../../gateway/gateway.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { SemaphoreFullError } from "../../support/semaphore.ts";
import { type Executed, type RuntimeBackend, defineBackend } from "../api/backend.ts";
import { RuntimeError } from "../api/errors.ts";
import type { BoundLimits } from "../api/limits.ts";
import { runtimeProfiles } from "../api/request.ts";
import { Engines } from "./engine.ts";
import { defaultIdleThreads, defaultMemoryBytes, defaultThreads } from "./limits.ts";
import { type WasmExecution, runOn } from "./run.ts";
import { Threads } from "./threads.ts";
import { tryLimits } from "./trials.ts";

export const wasmKind = "wasm";
const languages = ["typescript", "javascript"] as const;
/** Milliseconds for all trials. */
const trialsTimeoutMs = 30_000;

/** Options of {@link openWasm}. */
export interface WasmOptions {
  /** Executions at once, each in a thread; 4 by default. Others wait. */
  readonly maxThreads?: number;
  /** Threads that wait for executions; 1 by default. */
  readonly idleThreads?: number;
  /** The most memory of an execution; 64 MiB by default. */
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Opens the backend and tries its limits. The caller owns it. Throws RuntimeError
 * `RUNTIME_UNAVAILABLE` where it cannot run; the signal's reason.
 */
export async function openWasm(options: WasmOptions = {}): Promise<RuntimeBackend> {
  const { signal = new AbortController().signal, clock = systemClock } = options;
  await using stack = new AsyncDisposableStack();
  try {
    const { memoryBytes = defaultMemoryBytes } = options;
    const engines = await Engines.load();
    const sizes = {
      maxThreads: options.maxThreads ?? defaultThreads,
      maxIdle: options.idleThreads ?? defaultIdleThreads,
    };
    const threads = stack.use(new Threads(await engines.of(memoryBytes), sizes, clock));
    const programs = new Programs(engines, threads, memoryBytes, clock);
    const over = AbortSignal.any([signal, AbortSignal.timeout(trialsTimeoutMs)]);
    const evidence = await tryLimits(async (code, limits) => {
      const gateway = createFunctionGateway([]);
      const execution = { code, language: "javascript", gateway, limits };
      return (await programs.run(execution, over)).value;
    });
    await threads.warm();
    const owned = stack.move();
    return defineBackend(
      {
        ...{ kind: wasmKind, languages, readiness: "beta", evidence, maxCodeBytes },
        // There are neither sockets nor programs that `hardened` could forbid.
        profiles: runtimeProfiles,
        details: { engine: "quickjs-ng", memoryBytes, ...sizes },
        run: (execution, ending) => programs.run(execution, ending),
        close: () => owned.disposeAsync(),
      },
      clock,
    );
  } catch (cause) {
    signal.throwIfAborted();
    const detail = `${wasmKind} cannot be used on this host`;
    throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail, cause, op: "open", backend: wasmKind });
  }
}

/** A program as its execution limits it. */
type LimitedExecution = Omit<WasmExecution, "limits" | "gateway"> & {
  readonly gateway: ToolGateway;
  readonly limits: Pick<BoundLimits, "memoryBytes" | "cpuQuotaMillis">;
};

class Programs {
  readonly #engines: Engines;
  readonly #threads: Threads;
  readonly #memoryBytes: number;
  readonly #clock: Clock;

  constructor(engines: Engines, threads: Threads, memoryBytes: number, clock: Clock) {
    this.#engines = engines;
    this.#threads = threads;
    this.#memoryBytes = memoryBytes;
    this.#clock = clock;
  }

  /** Rejects with RuntimeError, or another error of the backend itself. */
  async run(execution: LimitedExecution, signal: AbortSignal): Promise<Executed> {
    // A request never widens what the owner gives.
    const memoryBytes = Math.min(execution.limits.memoryBytes, this.#memoryBytes);
    const engine = await this.#engines.of(memoryBytes);
    try {
      const result = await this.#threads.use(signal, (thread, over) =>
        runOn(thread, engine, execution, this.#clock, over),
      );
      if (result instanceof RuntimeError) throw result;
      return result;
    } catch (error) {
      if (!(error instanceof SemaphoreFullError)) throw error;
      const detail = "too many executions wait for a thread";
      throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail, cause: error });
    }
  }
}
