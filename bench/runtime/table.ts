/**
 * What executions of the library cost, as Markdown.
 */
import { comparisonTable } from "../comparison.ts";
import type { Measurement } from "../measure.ts";
import { type BenchHost, describeRun } from "../report.ts";
import { aims } from "./aims.ts";

/** Results of a run with executions of the library. */
export interface MeasuredRuntime {
  readonly rows: readonly Measurement[];
  /** The Docker engine that ran containers, or why there are no rows of it. */
  readonly docker: string;
}

/** One run, as `bench/results/*-runtime.json` holds it. */
export interface RuntimeReport extends MeasuredRuntime, BenchHost {
  readonly rounds: number;
}

/** The report as Markdown. */
export function formatRuntime(report: RuntimeReport): string {
  const { rows, docker } = report;
  const head = `${describeRun(report)}; docker: ${docker}.`;
  return [head, "", ...comparisonTable(rows, aims)].join("\n");
}
