/**
 * A broker with workers of one group, and calls by as many callers as wanted.
 */
import type { Agent } from "../../harness/agent.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { connectAgent } from "../end-to-end.ts";
import { callTimeoutSeconds, environmentOf, startTimeoutMs } from "../environment.ts";
import { quiet } from "../stock.ts";
import { nameOf } from "../tools.ts";
import { WorkerProcess } from "../worker-process.ts";
import type { ForkedBroker } from "./broker.ts";
import { ProcessorGroup } from "./group.ts";
import type { Kind } from "./kinds.ts";
import { memoryOf } from "./memory.ts";
import { type Parts, type Use, look, useBetween } from "./use.ts";

/** Broker, tool, and number of workers and slots. */
export interface RigOptions {
  readonly broker: ForkedBroker;
  /** A directory that sandboxes can reach. */
  readonly base: string;
  readonly kind: Kind;
  readonly workers: number;
  /** Of each worker. */
  readonly slots: number;
  /** Calls of one namespace reach its workers only. */
  readonly namespace?: string;
}

/** Members of an answer that the benchmark reads. */
interface Success {
  readonly result: {
    readonly execution: { readonly usage: { readonly peak_memory_bytes: number } };
  };
}

/**
 * How calls are made: `callers` at a time, in the first loop `warmUpCalls` without arguments, by
 * which the workers' code is compiled, then those of the tool: uncounted for `warmUpMs`, then for
 * `windowMs`.
 */
export interface LoopOptions {
  readonly callers: number;
  readonly warmUpMs: number;
  readonly warmUpCalls: number;
  readonly windowMs: number;
}

/** What the parts took while so many calls ended, and how many of these found an idle sandbox. */
export interface Window extends Use {
  readonly calls: number;
  readonly hits: number;
}

/** Idle sandboxes: how many, calls so far that found one, and bytes with their template. */
export interface Idle {
  readonly count: number;
  readonly hits: number;
  readonly bytes: number;
}

/** Milliseconds between two looks at how many calls have ended. */
const lookMs = 50;

/** Workers that serve one tool, and an agent. Its owner disposes it. */
export class Rig implements AsyncDisposable {
  readonly workers: readonly WorkerProcess[];
  readonly #parts: Parts;
  readonly #agent: Agent;
  readonly #kind: Kind;
  readonly #owned: AsyncDisposable;
  /** Of all loops so far. */
  #calls = 0;

  private constructor(
    { kind }: RigOptions,
    workers: readonly WorkerProcess[],
    parts: Parts,
    agent: Agent,
    owned: AsyncDisposable,
  ) {
    this.workers = workers;
    this.#parts = parts;
    this.#agent = agent;
    this.#kind = kind;
    this.#owned = owned;
  }

  /** Starts the workers, and waits for a call of the tool. */
  static async start(options: RigOptions): Promise<Rig> {
    const { broker, base, kind, slots, namespace = "sizing" } = options;
    const signal = AbortSignal.timeout(startTimeoutMs);
    await using owned = new AsyncDisposableStack();
    const group = owned.use(new ProcessorGroup(namespace));
    const workers: WorkerProcess[] = [];
    for (let n = 1; n <= options.workers; n++) {
      const name = `sizing-${performance.now().toFixed(0)}-${n}`;
      const environment = await environmentOf(base, name, [kind.tool], broker.variables);
      const own = {
        SANDBOX_MAX_CONCURRENT: String(slots),
        SAM_WORKER_ID: name,
        SAM_NAMESPACE: namespace,
      };
      const start = () => WorkerProcess.start({ ...environment, ...own }, signal);
      workers.push(owned.use(await group.around(start)));
    }
    const agent = owned.use(await connectAgent(broker, signal, namespace));
    const parts = { workers, workersGroup: group, brokerGroup: broker.group };
    const rig = new Rig(options, workers, parts, agent, owned.move());
    await rig.call();
    return rig;
  }

  /** Makes a call; the bytes that its sandbox used at most. Throws unless it succeeds. */
  async call(args: Kind["args"] = this.#kind.args): Promise<number> {
    const tool = nameOf(this.#kind.tool);
    const answer = await this.#agent.call({ tool, args, timeoutSeconds: callTimeoutSeconds });
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    const { result } = answer.response as unknown as Success;
    return result.execution.usage.peak_memory_bytes;
  }

  /** What all parts have taken so far. */
  look(): Promise<Use> {
    return look(this.#parts);
  }

  /** Waits until as many sandboxes are idle as should be. */
  quiet(): Promise<void> {
    return quiet(this.workers.map((worker) => () => worker.stats()));
  }

  /** The idle sandboxes of all workers together. */
  async idle(): Promise<Idle> {
    const stats = (await Promise.all(this.workers.map((worker) => worker.stats()))).flat();
    const sum = (field: "idle" | "hits" | "privateBytes"): number =>
      stats.reduce((total, pool) => total + pool[field], 0);
    return { count: sum("idle"), hits: sum("hits"), bytes: sum("privateBytes") };
  }

  /** Bytes of the workers without their sandboxes. */
  memory(): Promise<number> {
    return memoryOf(this.workers.map(({ pid }) => pid));
  }

  /** A closed loop: each caller makes its next call after the answer. Calls of the window. */
  async loop({ callers, warmUpMs, warmUpCalls, windowMs }: LoopOptions): Promise<Window> {
    let isOver = false;
    const isWarm = (): boolean => this.#calls >= warmUpCalls;
    const lanes = Array.from({ length: callers }, async () => {
      for (; !isOver; this.#calls++) await this.call(isWarm() ? undefined : {});
    });
    const work = Promise.all(lanes);
    try {
      while (!isWarm()) await sleepBeside(lookMs, work);
      await sleepBeside(warmUpMs, work);
      const [{ hits }, before, from] = [await this.idle(), this.#calls, await this.look()];
      await sleepBeside(windowMs, work);
      const [to, after, last] = [await this.look(), this.#calls, await this.idle()];
      return { ...useBetween(from, to), calls: after - before, hits: last.hits - hits };
    } finally {
      isOver = true;
      await work;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}

/** Waits while work goes on; rejects when that does. */
async function sleepBeside(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([systemClock.sleep(ms), work]);
}
