/**
 * Throttles reads of flooding tools, so that together they use a part of the event loop only.
 */

/** Least pause of each reader, and least time between two reads, in milliseconds. */
export interface FloodPause {
  readonly leastMs: number;
  readonly betweenMs: number;
}

/** Schedules one read after the other. */
export class ReadThrottle {
  readonly #pause: FloodPause;
  /** Start of the last scheduled read. */
  #lastReadMs = -Infinity;

  constructor(pause: FloodPause) {
    this.#pause = pause;
  }

  /** Reserves the next read; milliseconds until then from `nowMs` of a monotonic clock. */
  pauseMs(nowMs: number): number {
    const { leastMs, betweenMs } = this.#pause;
    this.#lastReadMs = Math.max(nowMs + leastMs, this.#lastReadMs + betweenMs);
    return this.#lastReadMs - nowMs;
  }
}
