/**
 * What calls by tools cost, as Markdown.
 */
import { comparisonTable, mark, time } from "../comparison.ts";
import type { Measurement } from "../measure.ts";
import { type BenchHost, describeRun } from "../report.ts";
import { aims } from "./aims.ts";
import type { Flood } from "./floods.ts";
import type { Programs } from "./programs.ts";

const bytesPerMebibyte = 1024 * 1024;

/** Milliseconds by which the event loop may be late (p99), and MiB by which memory may grow. */
const maxima = { loopMs: 10, growthMebibytes: 32 } as const;

/** Results of a run with calls by tools. */
export interface MeasuredGateway {
  readonly rows: readonly Measurement[];
  readonly floods: readonly Flood[];
  readonly programs: Programs;
}

/** One run, as `bench/results/*-gateway.json` holds it. */
export interface GatewayReport extends MeasuredGateway, BenchHost {
  readonly rounds: number;
}

/** The report as Markdown. */
export function formatGateway(report: GatewayReport): string {
  const { rows, floods, programs } = report;
  return [
    `${describeRun(report)}.`,
    "",
    ...comparisonTable(rows, aims),
    "",
    "| flood | programs | requests of each | taken, KiB | event loop, p99 | aim | resident memory, MiB | aim |",
    "|---|---:|---:|---:|---:|---|---:|---|",
    ...floods.map(floodLine),
    "",
    "| programs | calls of each | ended | aim | slots | at work at once | aim | seconds |",
    "|---:|---:|---:|---|---:|---:|---|---:|",
    programsLine(programs),
  ].join("\n");
}

function floodLine({ kind, programs, requests, takenBytes, loop, growthBytes }: Flood): string {
  const { loopMs, growthMebibytes } = maxima;
  const growth = growthBytes / bytesPerMebibyte;
  const cells = [
    ...[kind, programs, requests, (takenBytes / 1024).toFixed(0)],
    ...[time(loop.p99Ms), `≤ ${loopMs} ${mark(loop.p99Ms <= loopMs)}`],
    ...[`+${growth.toFixed(0)}`, `< ${growthMebibytes} ${mark(growth < growthMebibytes)}`],
  ];
  return `| ${cells.join(" | ")} |`;
}

function programsLine(measured: Programs): string {
  const { programs, calls, ended, slots, mostAtOnce, seconds } = measured;
  const cells = [
    ...[programs, calls, ended, `all ${mark(ended === programs)}`],
    ...[slots, mostAtOnce, `≤ slots ${mark(mostAtOnce <= slots)}`, seconds.toFixed(1)],
  ];
  return `| ${cells.join(" | ")} |`;
}
