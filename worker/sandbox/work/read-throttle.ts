/**
 * When those who flood may go on, so that no number of them takes more than a part of one event
 * loop.
 */

/** Milliseconds that each waits at least, and between the turns of any two. */
export interface FloodPause {
  readonly leastMs: number;
  readonly betweenMs: number;
}

/** Gives one turn after the other. */
export class ReadThrottle {
  readonly #pause: FloodPause;
  /** When the last turn that was given out begins. */
  #lastTurnMs = -Infinity;

  constructor(pause: FloodPause) {
    this.#pause = pause;
  }

  /**
   * Milliseconds from `nowMs`, of a monotonic clock, until the next turn, which is the caller's.
   */
  pauseMs(nowMs: number): number {
    const { leastMs, betweenMs } = this.#pause;
    this.#lastTurnMs = Math.max(nowMs + leastMs, this.#lastTurnMs + betweenMs);
    return this.#lastTurnMs - nowMs;
  }
}
