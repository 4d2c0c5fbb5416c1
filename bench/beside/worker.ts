/**
 * One of the two workers, in a process and a control group of its own.
 */
import { resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "../../harness/agent.ts";
import type { ToolCall } from "../../harness/messages.ts";
import { startBroker } from "../brokers.ts";
import { connectAgent } from "../end-to-end.ts";
import { callTimeoutSeconds, environmentOf, startTimeoutMs } from "../environment.ts";
import { ProcessorGroup } from "../sizing/group.ts";
import { WorkerProcess } from "../worker-process.ts";

/** Which worker, and what it serves. */
export interface BesideOptions {
  /** Of its work directories. */
  readonly base: string;
  readonly name: string;
  /** The checkout. */
  readonly root: string;
  /** Manifest entries by tool. */
  readonly entries: Readonly<Record<string, object>>;
  /** Settings of both, in place of those of every benchmark. */
  readonly variables: Readonly<Record<string, string>>;
}

/** A running worker. Its owner disposes it. */
export class BesideWorker implements AsyncDisposable {
  /** Its process. */
  readonly pid: number;
  readonly #agent: Agent;
  readonly #group: ProcessorGroup | undefined;
  readonly #owned: AsyncDisposable;

  private constructor(
    { pid }: WorkerProcess,
    agent: Agent,
    group: ProcessorGroup | undefined,
    owned: AsyncDisposable,
  ) {
    this.pid = pid;
    this.#agent = agent;
    this.#group = group;
    this.#owned = owned;
  }

  /** Starts it beside a DevBroker of its own. */
  static async start(options: BesideOptions): Promise<BesideWorker> {
    const { base, name, root, entries } = options;
    await using owned = new AsyncDisposableStack();
    const signal = AbortSignal.timeout(startTimeoutMs);
    const broker = owned.use(await startBroker("dev"));
    const usual = await environmentOf(base, name, [], broker.variables, entries);
    const environment = { ...usual, ...options.variables };
    const group = owned.use(makeGroup(name));
    const program = new URL("bench/worker.ts", pathToFileURL(resolve(root) + sep));
    const start = () => WorkerProcess.start(environment, signal, program);
    const worker = owned.use(await (group === undefined ? start() : group.around(start)));
    const agent = owned.use(await connectAgent(broker, signal));
    return new BesideWorker(worker, agent, group, owned.move());
  }

  /** Processor seconds of worker and sandboxes so far; undefined where nobody counts them. */
  get cpuSeconds(): number | undefined {
    return this.#group?.seconds;
  }

  /** Makes a call. Throws unless it succeeds. */
  async call(call: ToolCall): Promise<void> {
    const answer = await this.#agent.call({ timeoutSeconds: callTimeoutSeconds, ...call });
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}

/** Undefined where this process may not make one. */
function makeGroup(name: string): ProcessorGroup | undefined {
  try {
    return new ProcessorGroup(name);
  } catch {
    return undefined;
  }
}
