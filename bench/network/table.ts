/**
 * What a list of hosts costs, as Markdown.
 */
import { type BenchHost, describeRun } from "../report.ts";
import type { Load } from "./load.ts";
import type { MeasuredPair } from "./pairs.ts";

const bytesPerMebibyte = 1024 * 1024;

/** Milliseconds by which the event loop may be late (p99), and MiB by which memory may grow. */
const maxima = { loopMs: 20, growthMebibytes: 32 } as const;

/** Results of a run with networks. */
export interface MeasuredNetwork {
  readonly starts: readonly MeasuredPair[];
  readonly transfers: readonly MeasuredPair[];
  readonly loads: readonly Load[];
}

/** One run, as `bench/results/*-network.json` holds it. */
export interface NetworkReport extends MeasuredNetwork, BenchHost {
  readonly rounds: number;
}

/** The report as Markdown. */
export function formatNetwork(report: NetworkReport): string {
  const { starts, transfers, loads } = report;
  return [
    `${describeRun(report)}.`,
    "",
    ...tableOf(starts, "`none`"),
    "",
    ...tableOf(transfers, "direct"),
    "",
    "| what | MiB/s | event loop, p99 | aim | resident memory, MiB | aim |",
    "|---|---:|---:|---|---:|---|",
    ...loads.map(loadLine),
  ].join("\n");
}

function tableOf(pairs: readonly MeasuredPair[], other: string): readonly string[] {
  return [
    `| what | median | p90 | ${other} | its p90 | × ${other} | aim |`,
    "|---|---:|---:|---:|---:|---:|---|",
    ...pairs.map(lineOf),
  ];
}

function lineOf({ what, maxRatio, listed, other }: MeasuredPair): string {
  const ratio = listed.medianMs / other.medianMs;
  const judged =
    maxRatio === undefined
      ? `median ≤ its p90 ${mark(listed.medianMs <= other.p90Ms)}`
      : `≤ ${Number(maxRatio.toFixed(2))} ${mark(ratio <= maxRatio)}`;
  const times = [listed.medianMs, listed.p90Ms, other.medianMs, other.p90Ms].map(time);
  return `| ${[what, ...times, ratio.toFixed(2), judged].join(" | ")} |`;
}

function loadLine({ work, bytesPerSecond, loop, growthBytes }: Load): string {
  const { loopMs, growthMebibytes } = maxima;
  const growth = growthBytes / bytesPerMebibyte;
  const cells = [
    ...[work, (bytesPerSecond / bytesPerMebibyte).toFixed(0)],
    ...[time(loop.p99Ms), `≤ ${loopMs} ${mark(loop.p99Ms <= loopMs)}`],
    ...[`+${growth.toFixed(0)}`, `≤ ${growthMebibytes} ${mark(growth <= growthMebibytes)}`],
  ];
  return `| ${cells.join(" | ")} |`;
}

/** Round trips take less than a tenth of a millisecond. */
function time(ms: number): string {
  return ms.toFixed(ms < 1 ? 3 : ms < 10 ? 2 : 1);
}

function mark(isReached: boolean): string {
  return isReached ? "✓" : "✗";
}
