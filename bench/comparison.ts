/**
 * Rows next to what they are compared with: aims that are multiples of other rows of the same run.
 */
import type { Measurement } from "./measure.ts";
import { floorRow } from "./names.ts";

/** The most that a row may take, by the medians of others. */
export interface Aim {
  readonly row: string;
  readonly of: string;
  readonly factor: number;
  /** Of the floor, on top. */
  readonly floors: number;
}

/** An aim, its bound in milliseconds, and whether the run reached it. */
interface Judgement extends Aim {
  readonly boundMs: number;
  readonly isReached: boolean;
}

/** A table of the rows as Markdown, by lines; each has at most one aim. */
export function comparisonTable(
  rows: readonly Measurement[],
  aims: readonly Aim[],
): readonly string[] {
  return [
    "| what | median | p90 | p99 | compared with | may take | aim |",
    "|---|---:|---:|---:|---|---:|---|",
    ...rows.map((row) => lineOf(row, judge(row, rows, aims))),
  ];
}

function judge(
  { name, medianMs }: Measurement,
  rows: readonly Measurement[],
  aims: readonly Aim[],
): Judgement | undefined {
  const aim = aims.find(({ row }) => row === name);
  if (aim === undefined) return undefined;
  const medianOf = (wanted: string): number =>
    rows.find((row) => row.name === wanted)?.medianMs ?? Number.NaN;
  const boundMs = aim.factor * medianOf(aim.of) + aim.floors * medianOf(floorRow);
  return { ...aim, boundMs, isReached: medianMs <= boundMs };
}

function lineOf({ name, ...times }: Measurement, judged: Judgement | undefined): string {
  const numbers = [times.medianMs, times.p90Ms, times.p99Ms].map(time);
  const aim =
    judged === undefined
      ? ["", "", ""]
      : [judged.of, time(judged.boundMs), `${boundText(judged)} ${mark(judged.isReached)}`];
  return `| ${[name, ...numbers, ...aim].join(" | ")} |`;
}

function boundText({ of, factor, floors }: Judgement): string {
  const times = factor === 1 ? "the same" : `${factor} × ${of === floorRow ? "the floor" : "that"}`;
  return `≤ ${times}${floors === 0 ? "" : ` + ${floors} × the floor`}`;
}

/** Milliseconds; some rows take a fraction of one. */
export function time(ms: number): string {
  return ms.toFixed(ms < 1 ? 3 : ms < 10 ? 2 : 1);
}

export function mark(isReached: boolean): string {
  return isReached ? "✓" : "✗";
}
