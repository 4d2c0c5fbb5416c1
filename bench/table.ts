/**
 * A benchmark run as Markdown: what it was measured with, the table, and what of the aims was reached.
 */
import { type Judgement, judge } from "./aims.ts";
import type { Measurement, StartCounts } from "./measure.ts";
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
    ...aimsReached(judgements),
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
      ({ medianMs, kind }) => (kind === "loop" ? "" : (medianMs / baseMs).toFixed(2)),
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

function time(ms: number): string {
  return ms.toFixed(ms < fineBelowMs ? 2 : 1);
}

function starts(counts: StartCounts | undefined): string {
  return counts === undefined ? "" : `${counts.hits}, ${counts.misses}, ${counts.cold}`;
}

function aimsOf(name: string, judgements: readonly Judgement[]): string {
  return judgements
    .filter(({ row }) => row === name)
    .map(({ isReached, ...aim }) => `${aimText(aim)} ${isReached ? "✓" : "✗"}`)
    .join(", ");
}

function aimText({ figure, sign, bound }: Pick<Judgement, "figure" | "sign" | "bound">): string {
  return `${figure} ${sign} ${bound}`;
}

/** A sentence for all, and a line for each that was not; nothing for a run whose rows have none. */
function aimsReached(judgements: readonly Judgement[]): readonly string[] {
  if (judgements.length === 0) return [];
  const missed = judgements.filter(({ isReached }) => !isReached);
  const reached = judgements.length - missed.length;
  if (missed.length === 0) return ["", `All ${reached} aims are reached.`];
  return [
    "",
    `Of ${judgements.length} aims ${reached} are reached. Not reached:`,
    "",
    ...missed.map((aim) => `- ${aim.row}: ${aimText(aim)}; measured ${time(aim.value)}`),
  ];
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
