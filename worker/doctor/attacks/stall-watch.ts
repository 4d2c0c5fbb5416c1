/**
 * Measures stalls of this thread's event loop, without the time of waiting for a processor.
 */
import { readFileSync } from "node:fs";

/** Milliseconds between two samples. */
const resolutionMs = 10;

/** Measures until its disposal. */
export class StallWatch implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #atMs = performance.now();
  #delayMs = runDelayMs();
  #longestMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#sample(), resolutionMs);
  }

  /** Milliseconds of the longest stall until now. */
  get longestMs(): number {
    this.#sample();
    return this.#longestMs;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const [atMs, delayMs] = [performance.now(), runDelayMs()];
    const heldMs = atMs - this.#atMs - (delayMs - this.#delayMs) - resolutionMs;
    this.#longestMs = Math.max(this.#longestMs, heldMs);
    [this.#atMs, this.#delayMs] = [atMs, delayMs];
  }
}

/**
 * Milliseconds that this thread has waited for a processor; 0 where the kernel does not count them.
 * See Documentation/scheduler/sched-stats.rst of Linux.
 */
function runDelayMs(): number {
  try {
    const [, delayNs] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ");
    return Number(delayNs) / 1e6;
  } catch {
    return 0;
  }
}
