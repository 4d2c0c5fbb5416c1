/**
 * Notices calls by tools that follow each other. What nobody waits for then leaves the processors
 * to them: docs/adr/0057-cleaning-up-waits-for-the-end-of-a-series.md says why.
 */
import type { Clock } from "../support/clock.ts";

/** Milliseconds after the begin or end of a call within which the next belongs to its series. */
export const seriesGapMs = 20;

/** The present series, if there is one. */
export class CallSeries {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** On the monotonic clock. */
  #lastMs = -Infinity;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Call at the begin and at the end of each call that a tool makes. */
  note(): void {
    this.#lastMs = this.#clock.monotonicMs();
  }

  get isUnderWay(): boolean {
    return this.#clock.monotonicMs() < this.endsAtMs;
  }

  /** When it is over unless another call comes, on the monotonic clock. */
  get endsAtMs(): number {
    return this.#lastMs + seriesGapMs;
  }
}
