/**
 * Whether a measure of a worker grows over the time of a soak.
 */
import { quantile } from "../measure.ts";

/** Part of the time that is not looked at: caches fill, and idle sandboxes become enough. */
export const warmUpPart = 0.25;
/** Points after that, below which there is no verdict. */
export const minPoints = 20;
/** Times the spread of the points about the line that a rise must have. */
export const minSpreads = 2;
/** Makes the median distance from the middle that of one standard deviation. */
const deviationsPerMedian = 1.4826;
const secondsPerHour = 3600;

/** A value at a time. */
export interface TimedValue {
  readonly atSeconds: number;
  readonly value: number;
}

/** How values went after the warm-up. */
export interface Trend {
  readonly perHour: number;
  /** Of the line, from the first point to the last. */
  readonly rise: number;
  /** Of the points about the line: a standard deviation, but robust. */
  readonly spread: number;
  /** The rise that was the least to be called growth. */
  readonly threshold: number;
  readonly verdict: "grows" | "does not grow" | "too short";
}

/**
 * The line by Theil and Sen: its slope is the median of the slopes between all pairs of points. It
 * grows if it rises by more than `slack`, and by more than twice the spread of its points.
 *
 * @param slack a rise that needs no leak, such as garbage that is not collected yet
 */
export function trendOf(values: readonly TimedValue[], slack: number): Trend {
  const fromSeconds = warmUpPart * (values.at(-1)?.atSeconds ?? 0);
  const points = values.filter(({ atSeconds }) => atSeconds >= fromSeconds);
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < minPoints)
    return { perHour: 0, rise: 0, spread: 0, threshold: slack, verdict: "too short" };
  const slopes = points.flatMap((from, index) =>
    points.slice(index + 1).map((to) => (to.value - from.value) / (to.atSeconds - from.atSeconds)),
  );
  const slope = median(slopes);
  const offsets = points.map(({ atSeconds, value }) => value - slope * atSeconds);
  const middle = median(offsets);
  const spread = deviationsPerMedian * median(offsets.map((offset) => Math.abs(offset - middle)));
  const rise = slope * (last.atSeconds - first.atSeconds);
  const threshold = Math.max(slack, minSpreads * spread);
  const verdict = rise > threshold ? "grows" : "does not grow";
  return { perHour: slope * secondsPerHour, rise, spread, threshold, verdict };
}

function median(values: readonly number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}
