/**
 * Notices calls by tools that follow each other. What nobody waits for then leaves the processors
 * to them: docs/adr/0057-what-can-wait-waits-for-the-end-of-a-row.md says why.
 */
import type { Clock } from "../support/clock.ts";

/** Milliseconds after the begin or the end of a call within which the next belongs to its row. */
export const rowGapMs = 20;

/** The present row, if there is one. */
export class CallRow {
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
    return this.#lastMs + rowGapMs;
  }
}
