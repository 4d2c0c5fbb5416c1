/**
 * Numbers of a histogram: plain, as all that is counted, so that counting cannot fail.
 */

/** A trace that shows an observation. */
export interface Exemplar {
  readonly traceId: string;
  readonly value: number;
  readonly epochSeconds: number;
}

/** A histogram at a moment. */
export interface HistogramValue {
  /** Upper bounds of the buckets but the last, ascending. */
  readonly bounds: readonly number[];
  /** Of each bucket for itself; one more than bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
  /** The last of each bucket that has any. */
  readonly exemplars: readonly (Exemplar | undefined)[];
}

/** Seconds: from what a hit of the pool takes to the longest calls, about threefold each. */
export const secondsBounds: readonly number[] = [
  0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000,
];

/** Counts observations by size. */
export class Histogram implements HistogramValue {
  readonly bounds: readonly number[];
  readonly counts: number[];
  readonly exemplars: (Exemplar | undefined)[] = [];
  sum = 0;

  constructor(bounds: readonly number[] = secondsBounds) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number, shownBy?: Omit<Exemplar, "value">): void {
    this.sum += value;
    const found = this.bounds.findIndex((bound) => value <= bound);
    const bucket = found < 0 ? this.bounds.length : found;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    if (shownBy !== undefined) this.exemplars[bucket] = { ...shownBy, value };
  }
}
