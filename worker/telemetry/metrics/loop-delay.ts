/**
 * How long the event loop keeps timers waiting. Node's own monitor wakes a worker a hundred times a
 * second.
 */
import { Histogram } from "./histogram.ts";

/** Milliseconds between two samples. */
export const sampleMs = 250;

/** Milliseconds of a stall that count at most: a worker may be stopped for days. */
const maxStallMs = 600_000;

/** Observes the loop until it is disposed. */
export class LoopDelay implements Disposable {
  /** Seconds by which the timer was late. */
  readonly seconds = new Histogram();
  readonly #timer: NodeJS.Timeout;
  #dueMs = performance.now() + sampleMs;

  constructor() {
    this.#timer = setInterval(() => this.#sample(), sampleMs);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const nowMs = performance.now();
    const lateMs = Math.min(Math.max(0, nowMs - this.#dueMs), maxStallMs);
    this.seconds.observe(lateMs / 1000);
    // Samples that a stall kept from happening: one for each stall would hide how long it was.
    for (let missedMs = lateMs - sampleMs; missedMs > 0; missedMs -= sampleMs)
      this.seconds.observe(missedMs / 1000);
    this.#dueMs = nowMs + sampleMs;
  }
}
