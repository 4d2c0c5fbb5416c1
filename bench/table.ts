/**
 * A benchmark run as Markdown: what it was measured with, the table, and what of the aims was
 * reached.
 */
import { type Judgement, aimedFloorMs, judge, slownessOf } from "./aims.ts";
import type { Measurement, RowKind, StartCounts } from "./measure.ts";
import { hardeningRows } from "./names.ts";
import { type BenchReport, describeRun } from "./report.ts";

const bytesPerMegabyte = 1024 * 1024;
/** Below it, times have two digits after the point. */
const fineBelowMs = 10;

/** The report as Markdown. */
export function formatReport(report: BenchReport): string {
  const judgements = judge(report);
  return [
    `${describeRun(report)}.`,
    "",
    ...table(report, judgements),
    ...aimsReached(report, judgements),
    ...hardeningCost(report.rows),
  ].join("\n");
}

function table(report: BenchReport, judgements: readonly Judgement[]): readonly string[] {
  const { machine, baseline, rows } = report;
  const baseMs = medianOf(rows, baseline) ?? Number.NaN;
  const columns: readonly (readonly [string, (row: Measurement) => string])[] = [
    ["what", ({ name }) => name],
    ["median", ({ medianMs }) => time(medianMs)],
    ["p90", ({ p90Ms }) => time(p90Ms)],
    ["p99", ({ p99Ms }) => time(p99Ms)],
    [
      `× ${baseline}`,
      ({ medianMs, kind }) => (isComparable(kind) ? (medianMs / baseMs).toFixed(2) : ""),
    ],
    [
      `per second and core, ${report.inFlight} at once`,
      ({ callsPerSecond: rate }) => (rate === undefined ? "" : (rate / machine.cores).toFixed(0)),
    ],
    ["hits, misses, cold", ({ timedStarts }) => starts(timedStarts)],
    ["the same, at once", ({ saturatedStarts }) => starts(saturatedStarts)],
    [
      "MB each",
      ({ parkedBytes: bytes }) =>
        bytes === undefined ? "" : (bytes / bytesPerMegabyte).toFixed(1),
    ],
    ["aim", ({ name }) => aimsOf(name, judgements)],
  ];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    line(columns.map(([title]) => title)),
    `|${columns.map(([title]) => (title === "what" || title === "aim" ? "---|" : "---:|")).join("")}`,
    ...rows.map((row) => line(columns.map(([, cell]) => cell(row)))),
  ];
}

/** Whether a row tells of the time that one thing takes. */
function isComparable(kind: RowKind | undefined): boolean {
  return kind !== "loop" && kind !== "batch";
}

function time(ms: number): string {
  return ms.toFixed(ms < fineBelowMs ? 2 : 1);
}

function starts(counts: StartCounts | undefined): string {
  return counts === undefined ? "" : `${counts.hits}, ${counts.misses}, ${counts.cold}`;
}

function aimsOf(name: string, judgements: readonly Judgement[]): string {
  return judgements
    .filter(({ row }) => row === name)
    .map(aimText)
    .join("; ");
}

/** A bound as it stands, and where that is missed, for a machine of this one's speed. */
function aimText({ figure, sign, bound, isReached, here }: Judgement): string {
  const text = `${figure} ${sign} ${bound} ${mark(isReached)}`;
  if (isReached || here === undefined) return text;
  return `${text}, ${sign} ${time(here.bound)} ${mark(here.isReached)}`;
}

function mark(isReached: boolean): string {
  return isReached ? "✓" : "✗";
}

/**
 * Sentences for all, and a line for each that was not reached either way; nothing for a run whose
 * rows have none.
 */
function aimsReached(report: BenchReport, judgements: readonly Judgement[]): readonly string[] {
  if (judgements.length === 0) return [];
  const missed = judgements.filter(({ isReached }) => !isReached);
  if (missed.length === 0) return ["", `All ${judgements.length} aims are reached.`];
  const never = missed.filter(({ here }) => here?.isReached !== true);
  return [
    "",
    `Of ${judgements.length} aims ${judgements.length - missed.length} are reached as they stand${reachedHere(report, missed.length - never.length)}.`,
    ...(never.length === 0 ? [] : ["", "Not reached:", ""]),
    ...never.map((aim) => `- ${aim.row}: ${aimText(aim)}; measured ${time(aim.value)}`),
  ];
}

/** What else is reached by a machine of this one's speed. */
function reachedHere(report: BenchReport, count: number): string {
  const slowness = slownessOf(report);
  if (slowness === undefined) return "";
  return `, and ${count} more as multiples of the floor, which takes ${time(slowness * aimedFloorMs)} here and took ${time(aimedFloorMs)} where they were set`;
}

/** Milliseconds that hardening is to cost at most. */
const hardeningAimMs = 4;

/** A paragraph; none for a run without these rows. */
function hardeningCost(rows: readonly Measurement[]): readonly string[] {
  const [from, to, toByGuard] = [
    medianOf(rows, hardeningRows.from),
    medianOf(rows, hardeningRows.to),
    medianOf(rows, hardeningRows.toByGuard),
  ];
  if (from === undefined || to === undefined || toByGuard === undefined) return [];
  const [full, byGuard] = [to - from, toByGuard - from].map((ms) => ms.toFixed(1));
  return [
    "",
    `Over the design document's command line full hardening costs ${full} ms, and ${byGuard} ms where the guard alone keeps totals; the aim is below ${hardeningAimMs} ms.`,
  ];
}

function medianOf(rows: readonly Measurement[], wanted: string): number | undefined {
  return rows.find(({ name }) => name === wanted)?.medianMs;
}
