/**
 * Latencies of any number of calls in bounded memory.
 */
import { createHistogram } from "node:perf_hooks";

const microsecondsPerMs = 1000;

/** Longer ones count as this long: more than any call may take. */
const highestMs = 600_000;
/** Digits that a percentile is true to. */
const figures = 3;

/** Percentiles in milliseconds, of `count` calls; zero where there are none. */
export interface Latencies {
  readonly count: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/** A histogram with a relative error of a thousandth. */
export class LatencyHistogram {
  readonly #histogram = createHistogram({
    lowest: 1,
    highest: highestMs * microsecondsPerMs,
    figures,
  });

  /** Counts a call. */
  record(ms: number): void {
    const bounded = Math.min(Math.max(ms, 0), highestMs);
    this.#histogram.record(Math.max(1, Math.round(bounded * microsecondsPerMs)));
  }

  /** Its percentiles so far. */
  get latencies(): Latencies {
    const { count } = this.#histogram;
    const at = (percent: number): number =>
      count === 0 ? 0 : this.#histogram.percentile(percent) / microsecondsPerMs;
    return {
      count,
      ...{ p50Ms: at(50), p90Ms: at(90), p99Ms: at(99), p999Ms: at(99.9) },
      maxMs: count === 0 ? 0 : this.#histogram.max / microsecondsPerMs,
    };
  }

  /** The percentiles since this was last called. */
  take(): Latencies {
    const { latencies } = this;
    this.#histogram.reset();
    return latencies;
  }
}
