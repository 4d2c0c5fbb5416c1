/**
 * How far a chaos has come: calls that are over, and what happened to them meanwhile.
 */
import { abortable } from "../../worker/broker/abortable.ts";

/** Counts, and wakes those who wait. */
export class ChaosProgress {
  #calls = 0;
  #next = Promise.withResolvers<string>();
  #begun = 0;
  #over = 0;

  /** Calls that are over. */
  get calls(): number {
    return this.#calls;
  }

  /**
   * How often a call can have come back to its queue, at most, by what has begun. That by what was over before it was made
   * did not concern it.
   */
  get lossesBegun(): number {
    return this.#begun;
  }

  get lossesOver(): number {
    return this.#over;
  }

  /** A call is over. */
  advance(id: string): void {
    this.#calls++;
    this.#next.resolve(id);
    this.#next = Promise.withResolvers();
  }

  /** The next call that is over. Rejects when the signal aborts. */
  next(signal: AbortSignal): Promise<string> {
    return abortable(this.#next.promise, signal);
  }

  /** Resolves when so many calls are over. Rejects when the signal aborts before. */
  async until(calls: number, signal: AbortSignal): Promise<void> {
    while (this.#calls < calls) await this.next(signal);
  }

  /** Does something by which each call can come back to its queue so many times. */
  async during(losses: number, act: () => Promise<void> | void): Promise<void> {
    this.#begun += losses;
    await act();
    this.#over += losses;
  }
}
