/**
 * Sizes and refills all pools: within one memory budget, after running calls.
 */
import type { Clock } from "../support/clock.ts";
import { after } from "../support/timeout.ts";
import type { CallSeries } from "./call-series.ts";
import { allocate } from "./sizing.ts";
import { type ToolPool, holdMs } from "./tool-pool.ts";

/** Milliseconds between two runs without another reason: pools shrink as demand decays. */
export const shrinkEveryMs = 5_000;

/** Milliseconds for which a refill stands back at least, beside a call. */
export const soonMs = holdMs.some.template;
/** The share of its target with which a pool can wait for the end of a series of calls. */
const enoughForSeries = 0.25;

/** What is scheduled. */
export interface SchedulerOptions {
  /** All pools at the time of the call. */
  readonly pools: () => Iterable<ToolPool>;
  /** Bytes of memory for all idle sandboxes and templates. */
  readonly maxBytes: number;
  /** Processors: the bound of concurrent refills, and full load for calls. */
  readonly cpus: number;
  /** Calls that wait for calls of their own. One that computes meanwhile counts as waiting. */
  readonly suspendedCalls: () => number;
  readonly series: Pick<CallSeries, "isUnderWay" | "endsAtMs">;
  readonly clock: Clock;
}

/** A scheduler. Its owner disposes it after the last call. */
export class PoolScheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #refills = new Set<Promise<void>>();
  #calls = 0;
  #isScheduled = false;
  #isClosed = false;
  #timer: Disposable | undefined;
  /** When it fires, on the monotonic clock; past from then until the run. */
  #timerAtMs = Infinity;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** A call that needs a processor until this is disposed, unless it is suspended. Idempotent. */
  beginCall(): Disposable {
    this.#calls++;
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        this.#calls--;
        this.schedule();
      },
    };
  }

  /** Runs soon, and once for all requests until then. */
  schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.#run();
    });
  }

  /**
   * Runs while the call that has just started goes on, unless it ends before: until then its tool
   * may wait for this processor, and refills stand back.
   */
  scheduleSoon(): void {
    if (this.#isScheduled || this.#isClosed) return;
    const atMs = this.#options.clock.monotonicMs() + soonMs;
    if (atMs < this.#timerAtMs) this.#runAt(atMs);
  }

  /** Begins no more refills. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
  }

  /** Closes, and waits for refills under way: retire the pools first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await Promise.all(this.#refills);
  }

  #run(): void {
    const { maxBytes, cpus, clock, series } = this.#options;
    const pools = [...this.#options.pools()];
    const requests = pools.map((pool) => pool.request());
    const targets = allocate(requests, maxBytes);
    for (const [index, pool] of pools.entries()) pool.resize(targets[index] ?? 0);
    const nowMs = clock.monotonicMs();
    while (this.#refills.size < cpus) {
      const due = pools.filter((pool) => this.#dueMs(pool) <= nowMs);
      const [emptiest] = due.sort((a, b) => a.fill - b.fill);
      if (emptiest === undefined) break;
      this.#refill(emptiest);
    }
    // A refill that is due already begins when one under way ends.
    const later = pools.map((pool) => this.#dueMs(pool)).filter((dueMs) => dueMs > nowMs);
    const isInUse = pools.some((pool) => !pool.isEmpty);
    if (series.endsAtMs > nowMs) later.push(series.endsAtMs);
    this.#runAt(Math.min(...later, isInUse ? nowMs + shrinkEveryMs : Infinity));
  }

  #dueMs(pool: ToolPool): number {
    const { cpus, suspendedCalls, series } = this.#options;
    if (series.isUnderWay && pool.fill >= enoughForSeries) return pool.dueMs("series");
    const calls = this.#calls - suspendedCalls();
    return pool.dueMs(calls <= 0 ? "none" : calls < cpus ? "some" : "all");
  }

  #refill(pool: ToolPool): void {
    const refill = pool.refill();
    this.#refills.add(refill);
    void refill.then(() => {
      this.#refills.delete(refill);
      this.schedule();
    });
  }

  #runAt(atMs: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timerAtMs = atMs;
    if (atMs === Infinity) return;
    const { clock } = this.#options;
    this.#timer = after(Math.max(0, atMs - clock.monotonicMs()), clock, () => this.schedule());
  }
}
