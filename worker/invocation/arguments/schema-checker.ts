/**
 * Checks values against JSON Schemas: in threads with a time limit, unless the value surely fits.
 * The schema of a tool can make a check take years, by a pattern or by alternatives of
 * alternatives.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "../../support/clock.ts";
import type { JsonObject } from "../../support/json/json.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { abortable, withTimeout } from "../../support/timeout.ts";
import type { CheckAnswer, CheckRequest } from "./check.ts";
import { surelyFits } from "./surely-fits.ts";

/** Threads at once. Calls in flight bound the waiting checks, {@link checkWaitMs} their time. */
const maxThreads = 2;
/** Of these, threads for one schema, and for all schemas that were too slow lately. */
const maxThreadsOfOne = 1;
const maxThreadsOfSlow = 1;
/** Milliseconds until a check has to have a thread. */
export const checkWaitMs = 5_000;
/** Milliseconds until a thread is ready, and for one check. */
const startTimeoutMs = 30_000;
export const checkTimeoutMs = 2_000;
/** A schema is not tried while this many of its checks took too long in as many milliseconds. */
export const maxSlowChecks = 3;
export const slowSchemaMs = 60_000;
/** Megabytes of memory of a thread. */
const maxMemoryMb = 256;

/** A check ended without an answer: it took too much time or memory. */
export class CheckFailedError extends Error {}

/** Its owner disposes it after the last check. */
export class SchemaChecker implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #permits = new Semaphore({ capacity: maxThreads, maxWaiting: Infinity });
  readonly #slow = new Semaphore({ capacity: maxThreadsOfSlow, maxWaiting: Infinity });
  readonly #ofSchema = new WeakMap<JsonObject, Semaphore>();
  readonly #idle: Worker[] = [];
  readonly #keys = new WeakMap<JsonObject, number>();
  /** Times of the last checks that took too long, at most {@link maxSlowChecks}. */
  readonly #slowAtMs = new WeakMap<JsonObject, readonly number[]>();
  readonly #end = new AbortController();
  #lastKey = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a thread ahead of the first check, which takes a fifth of a second. */
  warm(): void {
    if (this.#lastKey > 0) return;
    const nothing = { schema: {}, value: null, coerce: false, isSecret: false };
    // The first check reports what is wrong.
    this.#checkInThread(nothing, this.#end.signal).catch(() => undefined);
  }

  /** Rejects with CheckFailedError, or the signal's reason. */
  async check(request: Omit<CheckRequest, "key">, over: AbortSignal): Promise<CheckAnswer> {
    over.throwIfAborted();
    if (surelyFits(request.value, request.schema)) return { ok: true };
    return await this.#checkInThread(request, over);
  }

  async #checkInThread(
    request: Omit<CheckRequest, "key">,
    over: AbortSignal,
  ): Promise<CheckAnswer> {
    const { schema } = request;
    const signal = AbortSignal.any([over, this.#end.signal]);
    using _turn = await this.#turn(schema, signal);
    if (this.#slowChecks(schema) >= maxSlowChecks) throw new CheckFailedError("is too slow");
    const key = this.#keyOf(schema);
    const thread = this.#idle.pop() ?? (await this.#start(signal));
    try {
      const answer = await this.#ask(thread, { ...request, key }, checkTimeoutMs, signal);
      this.#idle.push(thread);
      return answer as CheckAnswer;
    } catch (error) {
      await thread.terminate();
      signal.throwIfAborted();
      const times = [...(this.#slowAtMs.get(schema) ?? []), this.#clock.monotonicMs()];
      this.#slowAtMs.set(schema, times.slice(-maxSlowChecks));
      throw new CheckFailedError("took too much time or memory", { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("checks have ended"));
    await Promise.all(this.#idle.splice(0).map((thread) => thread.terminate()));
  }

  /**
   * Waits for a thread, behind at most one check of a schema that was too slow lately. Rejects with
   * CheckFailedError, or the signal's reason.
   */
  async #turn(schema: JsonObject, signal: AbortSignal): Promise<Disposable> {
    try {
      return await withTimeout(checkWaitMs, this.#clock, signal, async (over) => {
        using held = new DisposableStack();
        held.use(await this.#own(schema).acquire(over));
        if (this.#slowChecks(schema) > 0) held.use(await this.#slow.acquire(over));
        held.use(await this.#permits.acquire(over));
        return held.move();
      });
    } catch (error) {
      signal.throwIfAborted();
      throw new CheckFailedError("waited too long", { cause: error });
    }
  }

  #own(schema: JsonObject): Semaphore {
    const own =
      this.#ofSchema.get(schema) ??
      new Semaphore({ capacity: maxThreadsOfOne, maxWaiting: Infinity });
    this.#ofSchema.set(schema, own);
    return own;
  }

  /** Checks that took too long lately, at most {@link maxSlowChecks}. A value may cause one. */
  #slowChecks(schema: JsonObject): number {
    const times = this.#slowAtMs.get(schema) ?? [];
    const sinceMs = this.#clock.monotonicMs() - slowSchemaMs;
    return times.filter((atMs) => atMs > sinceMs).length;
  }

  #keyOf(schema: JsonObject): number {
    const key = this.#keys.get(schema) ?? ++this.#lastKey;
    this.#keys.set(schema, key);
    return key;
  }

  async #start(signal: AbortSignal): Promise<Worker> {
    // Compiled code loads the compiled thread, source loads source.
    const file = new URL(`./check-thread${extname(import.meta.url)}`, import.meta.url);
    const resourceLimits = { maxOldGenerationSizeMb: maxMemoryMb };
    // Some options of the process, such as --input-type, let no thread start.
    const thread = new Worker(file, { env: {}, execArgv: [], resourceLimits });
    // A thread may report too little memory after its check was given up.
    thread.on("error", () => undefined);
    try {
      await this.#ask(thread, undefined, startTimeoutMs, signal);
      // A waiting thread keeps no process alive.
      thread.unref();
      return thread;
    } catch (error) {
      await thread.terminate();
      throw error;
    }
  }

  /** The next message of the thread, after the question if there is one. */
  async #ask(
    thread: Worker,
    question: CheckRequest | undefined,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const ended = (): void => reject(new Error("the thread ended without an answer"));
    thread.once("message", resolve).once("error", reject).once("exit", ended);
    if (question !== undefined) thread.postMessage(question);
    try {
      return await withTimeout(timeoutMs, this.#clock, signal, (over) => abortable(promise, over));
    } finally {
      thread.off("message", resolve).off("error", reject).off("exit", ended);
    }
  }
}
