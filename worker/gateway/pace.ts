/**
 * A rate of operations: a burst runs at once, later ones wait for their time.
 */
import type { Clock } from "../support/clock.ts";

const secondMs = 1_000;

/** Lets a second's operations through at once, and then so many a second. */
export class Pace {
  readonly #intervalMs: number;
  readonly #clock: Clock;
  /** When the operations so far would end, one after the other. */
  #takenUntilMs = 0;

  constructor(perSecond: number, clock: Clock) {
    this.#intervalMs = secondMs / perSecond;
    this.#clock = clock;
  }

  /** Waits for an operation's time; false without a wait where that would be over a second. */
  async enter(signal: AbortSignal): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    const untilMs = Math.max(this.#takenUntilMs, nowMs) + this.#intervalMs;
    const waitMs = untilMs - secondMs - nowMs;
    if (waitMs > secondMs) return false;
    this.#takenUntilMs = untilMs;
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
    return true;
  }
}
