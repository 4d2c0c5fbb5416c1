/**
 * The last minutes of a worker in numbers, for charts.
 */
import type { Clock } from "../support/clock.ts";
import type { Sample } from "./api.ts";
import type { RecentCalls } from "./calls/recent-calls.ts";

const intervalMs = 2_000;
/** Ten minutes. */
const maxSamples = 300;

/** What is read of the worker. */
export type Gauges = Pick<
  Sample,
  "running" | "waiting" | "idle" | "idleWanted" | "idleMemoryBytes"
>;

/** Takes samples from its creation to its disposal. */
export class Samples implements Disposable {
  readonly #read: () => Gauges;
  readonly #calls: Pick<RecentCalls, "takeWindow">;
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly #listeners = new Set<(sample: Sample) => void>();
  readonly #samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;
  #lastMs: number;

  constructor(
    read: () => Gauges,
    calls: Pick<RecentCalls, "takeWindow">,
    clock: Pick<Clock, "nowMs" | "monotonicMs">,
  ) {
    this.#read = read;
    this.#calls = calls;
    this.#clock = clock;
    this.#lastMs = clock.monotonicMs();
    this.#timer = setInterval(() => this.take(), intervalMs).unref();
  }

  /** The oldest first. */
  get all(): readonly Sample[] {
    return this.#samples;
  }

  /** Calls the listener with each new sample. Disposing the answer ends that. */
  onSample(listener: (sample: Sample) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Takes a sample of the time since the last one. */
  take(): void {
    const nowMs = this.#clock.monotonicMs();
    const { calls, errors, durationsMs } = this.#calls.takeWindow();
    const sample: Sample = {
      atMs: this.#clock.nowMs(),
      seconds: (nowMs - this.#lastMs) / 1000,
      ...{ calls, errors },
      p50Ms: quantile(durationsMs, 0.5),
      p99Ms: quantile(durationsMs, 0.99),
      ...this.#read(),
    };
    this.#lastMs = nowMs;
    this.#samples.push(sample);
    if (this.#samples.length > maxSamples) this.#samples.shift();
    this.#listeners.forEach((listener) => listener(sample));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** Nearest rank; null of nothing. */
function quantile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}
