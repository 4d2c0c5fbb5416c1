/** The geometry of the charts: from samples to points, and the marks of the axes. */
import type { Sample } from "../../worker/console/api.ts";

/** A line of a chart: a value for each sample, or null where there is none. */
export interface Series {
  readonly label: string;
  /** As the chart's table writes it. */
  readonly valueOf: (sample: Sample) => number | null;
}

/** Where a chart draws, in units of its picture. */
export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The marks of an axis to above `max`: steps of 1, 2 or 5 times a power of ten, in units. */
export function niceMarks(max: number, unit = 1): readonly number[] {
  if (!(max > 0)) return [0, unit];
  const rough = max / unit / markCount;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10;
  const step = factor * power;
  const marks = [0];
  while ((marks.at(-1) ?? 0) < max * 0.999) {
    marks.push(Number((marks.length * step).toPrecision(12)) * unit);
  }
  return marks;
}

/** Steps of an axis, at least. */
const markCount = 3;

/** The largest value of the series. */
export function maxOf(samples: readonly Sample[], series: readonly Series[]): number {
  return Math.max(
    0,
    ...samples.flatMap((sample) => series.map(({ valueOf }) => valueOf(sample) ?? 0)),
  );
}

/** The path of a series as `d` of an SVG path; gaps where there is no value. */
export function linePath(
  samples: readonly Sample[],
  series: Series,
  top: number,
  frame: Frame,
): string {
  const [first, last] = [samples[0]?.atMs ?? 0, samples.at(-1)?.atMs ?? 0];
  const span = Math.max(last - first, 1);
  let isDrawing = false;
  const parts: string[] = [];
  for (const sample of samples) {
    const value = series.valueOf(sample);
    if (value === null) {
      isDrawing = false;
      continue;
    }
    const x = frame.left + (frame.width * (sample.atMs - first)) / span;
    const y = frame.top + frame.height * (1 - value / top);
    parts.push(`${isDrawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
    // A point between two gaps is a line of no length, which round ends make visible.
    if (!isDrawing) parts.push("h0");
    isDrawing = true;
  }
  return parts.join("");
}
