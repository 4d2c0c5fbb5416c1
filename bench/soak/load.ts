/**
 * Calls at times fixed ahead, whatever becomes of those before: an open loop.
 *
 * A latency counts from when the call was due, not from when it was sent, so that a wait of the
 * caller itself is in it (coordinated omission).
 */
import type { Clock } from "../../worker/support/clock.ts";
import { type Latencies, LatencyHistogram } from "./latencies.ts";

/** A schedule of calls, and how they are made. */
export interface LoadOptions {
  /** Milliseconds from the start at which each call is due, in order. */
  readonly dueMs: Iterable<number>;
  /** Calls in flight; one that is due beyond is missed: it is counted and never made. */
  readonly maxInFlight: number;
  /** Makes a call. Resolves to the code of its error, or undefined for a success. */
  readonly call: (index: number) => Promise<string | undefined>;
  /** The kind of a call, which has latencies of its own. */
  readonly kindOf: (index: number) => string;
  readonly clock: Clock;
}

/** What came of it. */
export interface LoadResult {
  readonly latencies: Latencies;
  /** Of the same, successes and failures apart. Runs of old do not say. */
  readonly succeeded?: Latencies;
  readonly failed?: Latencies;
  /** Of successes; in runs of old of failures, too. */
  readonly byKind: Readonly<Record<string, Latencies>>;
  /** From when calls were due to when they were sent. */
  readonly lateness: Latencies;
  /** Calls that were due and not made. */
  readonly missed: number;
  /** Calls that failed, by code. */
  readonly errors: Readonly<Record<string, number>>;
}

/** A load that runs once. */
export class Load {
  readonly #options: LoadOptions;
  readonly #all = new LatencyHistogram();
  readonly #succeeded = new LatencyHistogram();
  readonly #failed = new LatencyHistogram();
  readonly #window = new LatencyHistogram();
  readonly #lateness = new LatencyHistogram();
  readonly #byKind = new Map<string, LatencyHistogram>();
  readonly #errors = new Map<string, number>();
  readonly #inFlight = new Set<Promise<void>>();
  #missed = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Makes all calls, and waits for the last. Throws what a call throws, after the others. */
  async run(): Promise<LoadResult> {
    const { dueMs, maxInFlight, clock } = this.#options;
    const startMs = clock.monotonicMs();
    const failed: unknown[] = [];
    let index = 0;
    for (const due of dueMs) {
      const dueAtMs = startMs + due;
      const waitMs = dueAtMs - clock.monotonicMs();
      if (waitMs > 0) await clock.sleep(waitMs);
      if (failed.length > 0) break;
      const current = index++;
      if (this.#inFlight.size >= maxInFlight) {
        this.#missed++;
        continue;
      }
      const call = this.#make(current, dueAtMs)
        .catch((error: unknown) => void failed.push(error))
        .finally(() => this.#inFlight.delete(call));
      this.#inFlight.add(call);
    }
    await Promise.all(this.#inFlight);
    if (failed.length > 0) throw failed[0];
    return this.#result();
  }

  /** The latencies of calls that have succeeded since this was last called. */
  takeWindow(): Latencies {
    return this.#window.take();
  }

  async #make(index: number, dueAtMs: number): Promise<void> {
    const { call, kindOf, clock } = this.#options;
    this.#lateness.record(clock.monotonicMs() - dueAtMs);
    const code = await call(index);
    const elapsedMs = clock.monotonicMs() - dueAtMs;
    this.#all.record(elapsedMs);
    if (code !== undefined) {
      this.#failed.record(elapsedMs);
      this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
      return;
    }
    const kind = kindOf(index);
    const ofKind = this.#byKind.get(kind) ?? new LatencyHistogram();
    this.#byKind.set(kind, ofKind);
    for (const histogram of [this.#succeeded, this.#window, ofKind]) histogram.record(elapsedMs);
  }

  #result(): LoadResult {
    const kinds = [...this.#byKind].map(([kind, { latencies }]) => [kind, latencies] as const);
    return {
      latencies: this.#all.latencies,
      succeeded: this.#succeeded.latencies,
      failed: this.#failed.latencies,
      byKind: Object.fromEntries(kinds.toSorted(([a], [b]) => (a < b ? -1 : 1))),
      lateness: this.#lateness.latencies,
      missed: this.#missed,
      errors: Object.fromEntries(this.#errors),
    };
  }
}
