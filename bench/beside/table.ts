/**
 * What a change has brought, as Markdown.
 */
import { type BenchHost, describeRun } from "../report.ts";
import { lightTool, pandasTool } from "./names.ts";
import type { BesideRow, MeasuredBeside } from "./run.ts";

/** The most that after / before should be. */
const aims: Readonly<Record<string, { readonly p50: number; readonly cpu: number }>> = {
  "Python typical": { p50: 0.55, cpu: 0.8 },
  "JavaScript typical": { p50: 0.4, cpu: 0.25 },
};
/** The most that a call with pandas should take of a light one. */
const pandasAim = 1.5;

/** One run, as `bench/results/*-beside.json` holds it. */
export interface BesideReport extends MeasuredBeside, BenchHost {
  readonly rounds: number;
}

/** The report as Markdown. */
export function formatBeside(report: BesideReport): string {
  return [
    `${describeRun(report)}, beside ${report.before}.`,
    "",
    "| tool | what | before | after | after / before | aim |",
    "|---|---|---:|---:|---:|---:|",
    ...report.rows.flatMap(linesOf),
    ...pandasLines(report.rows),
  ].join("\n");
}

function pandasLines(rows: readonly BesideRow[]): readonly string[] {
  const p50Of = (name: string) => rows.find(({ tool }) => tool === name)?.after.p50Ms;
  const [light, pandas] = [p50Of(lightTool), p50Of(pandasTool)];
  if (light === undefined || pandas === undefined) return [];
  const times = `${(pandas / light).toFixed(2)} times (aim ${pandasAim})`;
  return ["", `A call with pandas takes a light one's p50 ${times}.`];
}

function linesOf({ tool, before, after }: BesideRow): readonly string[] {
  const aim = aims[tool];
  const line = (
    what: string,
    one: number | undefined,
    other: number | undefined,
    most?: number,
  ): string => {
    const numbers = [one, other].map((value) => value?.toFixed(1) ?? "");
    const ratio = one === undefined || other === undefined ? "" : (other / one).toFixed(2);
    return `| ${[tool, what, ...numbers, ratio, most ?? ""].join(" | ")} |`;
  };
  return [
    line("ms, p10", before.p10Ms, after.p10Ms),
    line("ms, p50", before.p50Ms, after.p50Ms, aim?.p50),
    line("ms, p90", before.p90Ms, after.p90Ms),
    line("calls per second", before.callsPerSecond, after.callsPerSecond),
    line("processor ms per call", before.cpuMsPerCall, after.cpuMsPerCall, aim?.cpu),
  ];
}
