/**
 * Threads that run programs: a few wait ready, the number of all is bounded.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "../../support/clock.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { abortable, withTimeout } from "../../support/timeout.ts";
import {
  maxRunsOfThread,
  maxWaitingExecutions,
  refillDelayMs,
  threadHeapMb,
  threadStackMb,
  threadStartTimeoutMs,
} from "./limits.ts";
import type { Engine, ThreadCommand, ThreadData, ThreadReport } from "./messages.ts";
import { Output, outputSize } from "./output.ts";

/** A thread that is ready for a program. */
export interface EngineThread {
  readonly output: Output;
  /** Takes what the thread says until the next call, and its end as an error. */
  listen(onReport: (report: ThreadReport) => void, onEnd: (error: Error) => void): void;
  post(command: ThreadCommand): void;
  cpuUsage(since?: NodeJS.CpuUsage): Promise<NodeJS.CpuUsage>;
}

/** Runs a program, until the signal aborts. Says whether the thread is as good as new then. */
type RunsOnThread<Result> = (
  thread: EngineThread,
  signal: AbortSignal,
) => Promise<{ result: Result; isReusable: boolean }>;

/** Owns its threads. Its owner disposes it after the last program. */
export class Threads implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #maxIdle: number;
  readonly #clock: Clock;
  readonly #permits: Semaphore;
  /** Ready, or about to be. */
  readonly #idle = new Set<OwnThread>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #end = new AbortController();

  constructor(engine: Engine, sizes: { maxThreads: number; maxIdle: number }, clock: Clock) {
    this.#engine = engine;
    this.#maxIdle = sizes.maxIdle;
    this.#clock = clock;
    const { maxThreads } = sizes;
    this.#permits = new Semaphore({ capacity: maxThreads, maxWaiting: maxWaitingExecutions });
  }

  /** Resolves when a thread waits. */
  async warm(): Promise<void> {
    this.#fill();
    const [thread] = this.#idle;
    await thread?.ready;
  }

  /**
   * Runs a program on a thread of its own, and ends that unless the program says that it is as
   * good as new. Rejects with SemaphoreFullError, the signal's reason, and what the program does.
   */
  async use<Result>(signal: AbortSignal, program: RunsOnThread<Result>): Promise<Result> {
    const running = this.#use(AbortSignal.any([signal, this.#end.signal]), program);
    this.#running.add(running);
    return running.finally(() => this.#running.delete(running));
  }

  /** Ends programs that run. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("the backend is closed"));
    await Promise.allSettled(this.#running);
    await Promise.all(Array.from(this.#idle, (thread) => thread.terminate()));
  }

  async #use<Result>(over: AbortSignal, program: RunsOnThread<Result>): Promise<Result> {
    using _permit = await this.#permits.acquire(over);
    const thread = this.#take();
    const refill = setTimeout(() => this.#fill(), refillDelayMs).unref();
    let isReusable = false;
    try {
      await withTimeout(threadStartTimeoutMs, this.#clock, over, (ending) =>
        abortable(thread.ready, ending),
      );
      const ran = await program(thread, over);
      ({ isReusable } = ran);
      return ran.result;
    } finally {
      clearTimeout(refill);
      if (isReusable && this.#isWanted(thread)) this.#idle.add(thread);
      else await thread.terminate();
      this.#fill();
    }
  }

  /** The thread that was used last of those that are ready, if there are any. */
  #take(): OwnThread {
    const idle = [...this.#idle];
    const thread = idle.findLast(({ isReady }) => isReady) ?? idle[0] ?? this.#start();
    this.#idle.delete(thread);
    return thread;
  }

  #start(): OwnThread {
    // Who finds none starts one of its own, and learns the reason.
    const thread = new OwnThread(this.#engine, () => this.#idle.delete(thread));
    return thread;
  }

  #isWanted(thread: OwnThread): boolean {
    // The permit of the program that has ended is among those in use.
    const threads = this.#idle.size + this.#permits.inUse;
    const isSpare = threads > this.#permits.capacity + this.#maxIdle;
    return !isSpare && thread.runs < maxRunsOfThread && !this.#end.signal.aborted;
  }

  #fill(): void {
    while (this.#idle.size < this.#maxIdle && !this.#end.signal.aborted) {
      this.#idle.add(this.#start());
    }
  }
}

class OwnThread implements EngineThread {
  readonly output: Output;
  readonly #worker: Worker;
  readonly #onDeath: () => void;
  #isReady = false;
  #ready = Promise.withResolvers<void>();
  #failure: Error | undefined;
  #onReport: (report: ThreadReport) => void = () => undefined;
  #onEnd: (error: Error) => void = () => undefined;
  runs = 0;

  /** @param onDeath called when the thread has ended, for whatever reason */
  constructor(engine: Engine, onDeath: () => void) {
    this.#onDeath = onDeath;
    const memory = new SharedArrayBuffer(outputSize);
    this.output = new Output(memory);
    const workerData: ThreadData = { engine, output: memory };
    // Compiled code loads the compiled thread, source loads source.
    const file = new URL(`./wasm-thread${extname(import.meta.url)}`, import.meta.url);
    this.#worker = new Worker(file, {
      // Options of the process that uses the library are none of these threads'.
      ...{ workerData, env: {}, execArgv: [], stdout: true, stderr: true },
      resourceLimits: { stackSizeMb: threadStackMb, maxOldGenerationSizeMb: threadHeapMb },
    });
    this.#ready.promise.catch(() => undefined);
    this.#worker
      .on("message", (report: ThreadReport) => this.#hear(report))
      .on("error", (error) => this.#fail(error as Error))
      .on("exit", () => this.#fail(new Error("the thread has ended")));
  }

  /** Resolves when an instance waits for a program. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  listen(onReport: (report: ThreadReport) => void, onEnd: (error: Error) => void): void {
    this.#onReport = onReport;
    this.#onEnd = onEnd;
    if (this.#failure !== undefined) onEnd(this.#failure);
  }

  post(command: ThreadCommand): void {
    if (command.type === "run") {
      this.runs++;
      this.#isReady = false;
      this.#ready = Promise.withResolvers();
      this.#ready.promise.catch(() => undefined);
      this.#worker.ref();
    }
    this.#worker.postMessage(command);
  }

  cpuUsage(since?: NodeJS.CpuUsage): Promise<NodeJS.CpuUsage> {
    return this.#worker.cpuUsage(since);
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #hear(report: ThreadReport): void {
    if (report.type !== "ready") return this.#onReport(report);
    this.#isReady = true;
    // A waiting thread keeps no process alive.
    this.#worker.unref();
    this.#ready.resolve();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#isReady = false;
    this.#onDeath();
    this.#ready.reject(this.#failure);
    this.#onEnd(this.#failure);
  }
}
