/**
 * The benchmark's side of a worker in a process of its own.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { leanMemory } from "../harness/worker/worker-process.ts";
import type { PoolStats } from "../worker/pool/starts.ts";
import { Semaphore } from "../worker/support/semaphore.ts";
import type { Delays } from "./loop-delays.ts";

/**
 * What can be asked: about the sandboxes that wait; for the delays of the event loop since that was
 * last asked; how many resources keep the event loop alive; the bytes that a full collection of
 * garbage leaves.
 */
export type Question = "stats" | "delays" | "resources" | "live";

/** A worker that runs. Its owner disposes it. */
export class WorkerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #turns = new Semaphore({ capacity: 1, maxWaiting: Infinity });

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /**
   * Starts it and waits until it takes calls.
   *
   * @param program this checkout's unless given
   */
  static async start(
    environment: Readonly<Record<string, string>>,
    signal: AbortSignal,
    program = new URL("worker.ts", import.meta.url),
  ): Promise<WorkerProcess> {
    await using held = new AsyncDisposableStack();
    const child = fork(program, {
      env: { ...leanMemory, ...environment },
      execArgv: [...process.execArgv, "--expose-gc"],
    });
    const worker = held.use(new WorkerProcess(child));
    await answerOf(child, signal);
    held.move();
    return worker;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What is going on with the sandboxes that wait. */
  async stats(): Promise<readonly PoolStats[]> {
    return (await this.#ask("stats")) as readonly PoolStats[];
  }

  /** How long the event loop kept what was due waiting, since this was last asked. */
  async takeDelays(): Promise<Delays> {
    return (await this.#ask("delays")) as Delays;
  }

  /** Timers, sockets, processes and the like that keep its event loop alive. */
  async resources(): Promise<number> {
    return (await this.#ask("resources")) as number;
  }

  /** Bytes of objects and buffers in use. The worker stands still while it collects garbage. */
  async liveBytes(): Promise<number> {
    return (await this.#ask("live")) as number;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }

  async #ask(question: Question): Promise<unknown> {
    const { signal } = new AbortController();
    using _turn = await this.#turns.acquire(signal);
    const answered = answerOf(this.#child, signal);
    this.#child.send(question);
    return await answered;
  }
}

/** The next thing that a process says. Throws when it ends before. */
async function answerOf(child: ChildProcess, signal: AbortSignal): Promise<unknown> {
  const done = new AbortController();
  const either = { signal: AbortSignal.any([signal, done.signal]) };
  const ended = once(child, "exit", either).then(() => {
    throw new Error("the worker ended");
  });
  try {
    const [answer] = (await Promise.race([once(child, "message", either), ended])) as unknown[];
    return answer;
  } finally {
    done.abort();
    await ended.catch(() => undefined);
  }
}
