/**
 * How long an event loop keeps what is due waiting.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";

/**
 * Milliseconds between two looks. What is measured is from one to the next, so this is taken off.
 */
const resolutionMs = 1;
const nanosecondsPerMs = 1_000_000;

/** Delays in milliseconds. */
export interface Delays {
  readonly medianMs: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Measures the event loop of this process. */
export class LoopDelays {
  readonly #histogram = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor() {
    this.#histogram.enable();
  }

  /** What was measured since this was last called. */
  take(): Delays {
    const at = (percent: number): number => beyondInterval(this.#histogram.percentile(percent));
    const delays = {
      medianMs: at(50),
      p90Ms: at(90),
      p99Ms: at(99),
      maxMs: beyondInterval(this.#histogram.max),
    };
    this.#histogram.reset();
    return delays;
  }
}

function beyondInterval(nanoseconds: number): number {
  return Math.max(0, nanoseconds / nanosecondsPerMs - resolutionMs);
}
