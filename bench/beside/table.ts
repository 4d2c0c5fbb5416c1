/**
 * What a change has brought, as Markdown.
 */
import { type BenchHost, describeRun } from "../report.ts";
import type { BesideRow, MeasuredBeside } from "./run.ts";

/** One run, as `bench/results/*-beside.json` holds it. */
export interface BesideReport extends MeasuredBeside, BenchHost {
  readonly rounds: number;
}

/** The report as Markdown. */
export function formatBeside(report: BesideReport): string {
  return [
    `${describeRun(report)}, beside ${report.before}.`,
    "",
    "| tool | what | before | after | after / before |",
    "|---|---|---:|---:|---:|",
    ...report.rows.flatMap(linesOf),
  ].join("\n");
}

function linesOf({ tool, before, after }: BesideRow): readonly string[] {
  const line = (what: string, one: number | undefined, other: number | undefined): string => {
    const numbers = [one, other].map((value) => value?.toFixed(1) ?? "");
    const ratio = one === undefined || other === undefined ? "" : (other / one).toFixed(2);
    return `| ${[tool, what, ...numbers, ratio].join(" | ")} |`;
  };
  return [
    line("ms, p10", before.p10Ms, after.p10Ms),
    line("ms, p50", before.p50Ms, after.p50Ms),
    line("ms, p90", before.p90Ms, after.p90Ms),
    line("calls per second", before.callsPerSecond, after.callsPerSecond),
    line("processor ms per call", before.cpuMsPerCall, after.cpuMsPerCall),
  ];
}
