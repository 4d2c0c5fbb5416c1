/**
 * Notices calls by tools that follow each other. What nobody waits for then leaves the processors
 * to them: docs/adr/0057-what-can-wait-waits-for-the-end-of-a-row.md says why.
 */
import type { Clock } from "../support/clock.ts";

/** Milliseconds after the begin or the end of a call within which the next belongs to its row. */
export const rowGapMs = 20;

/** What a row is noticed by. */
export interface CallRowOptions {
  /** Calls that wait for calls of their own. */
  readonly suspendedCalls: () => number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** The present row, if there is one. */
export class CallRow {
  readonly #options: CallRowOptions;
  /** On the monotonic clock. */
  #lastMs = -Infinity;

  constructor(options: CallRowOptions) {
    this.#options = options;
  }

  /** Call at the begin and at the end of each call, the calls by tools among them. */
  note(): void {
    const { suspendedCalls, clock } = this.#options;
    if (suspendedCalls() > 0) this.#lastMs = clock.monotonicMs();
  }

  get isUnderWay(): boolean {
    return this.#options.clock.monotonicMs() < this.endsAtMs;
  }

  /** When it is over unless another call comes, on the monotonic clock. */
  get endsAtMs(): number {
    return this.#lastMs + rowGapMs;
  }
}
