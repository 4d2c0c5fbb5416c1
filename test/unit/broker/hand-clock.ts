/**
 * A clock that a test moves by hand.
 */
import type { Clock } from "../../../worker/support/clock.ts";

/** Time stands still until `advance`; every sleep is recorded. */
export class HandClock implements Clock {
  readonly slept: number[] = [];
  #now = 0;
  readonly #sleepers = new Set<{ readonly untilMs: number; wake(): void }>();

  nowMs(): number {
    return this.#now;
  }

  monotonicMs(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.slept.push(Math.round(ms));
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const sleeper = { untilMs: this.#now + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason as Error);
      });
    });
  }

  /** Moves time on and wakes who slept until then. */
  advance(ms: number): void {
    this.#now += ms;
    for (const sleeper of this.#sleepers) {
      if (sleeper.untilMs > this.#now) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  /** How many sleep now. */
  get sleeping(): number {
    return this.#sleepers.size;
  }
}
