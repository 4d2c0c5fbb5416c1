/**
 * A soak as Markdown.
 */
import type { BrokerKind } from "../brokers.ts";
import { brokers } from "../names.ts";
import { type BenchHost, describeHost } from "../report.ts";
import type { Latencies } from "./latencies.ts";
import type { LoadResult } from "./load.ts";
import type { Point } from "./points.ts";
import { type Trend, trendOf } from "./trend.ts";

const bytesPerMebibyte = 1024 * 1024;

/** Results of a soak. */
export interface MeasuredSoak extends LoadResult {
  readonly minutes: number;
  readonly callsPerSecond: number;
  readonly broker: BrokerKind;
  /** Of the schedule. */
  readonly seed: number;
  readonly maxInFlight: number;
  readonly workDirs: string;
  readonly points: readonly Point[];
}

/** One run, as `bench/results/*-soak.json` holds it. */
export interface SoakReport extends MeasuredSoak, BenchHost {}

/** A measure. */
interface Measure {
  readonly what: string;
  /** A rise that needs no leak, in its own unit; undefined where growth tells of none. */
  readonly slack?: number;
  readonly valueOf: (point: Point) => number;
}

const measures: readonly Measure[] = [
  {
    what: "memory that the worker has in use, MiB",
    slack: 8,
    valueOf: ({ liveBytes }) => liveBytes / bytesPerMebibyte,
  },
  {
    what: "resident memory of the worker, MiB",
    valueOf: ({ memoryBytes }) => memoryBytes / bytesPerMebibyte,
  },
  {
    what: "memory of idle sandboxes, MiB",
    slack: 32,
    valueOf: ({ idleBytes }) => idleBytes / bytesPerMebibyte,
  },
  { what: "open descriptors", slack: 8, valueOf: ({ descriptors }) => descriptors },
  { what: "resources of the event loop", slack: 8, valueOf: ({ resources }) => resources },
];

/** The report as Markdown. */
export function formatSoak(report: SoakReport): string {
  const { latencies, byKind, lateness, missed, errors, maxInFlight } = report;
  const failures = Object.entries(errors).map(([code, count]) => `${code} ${count}`);
  return [
    `${describeSoak(report)}.`,
    "",
    "| latency, ms | calls | p50 | p90 | p99 | p99.9 | max |",
    "|---|---:|---:|---:|---:|---:|---:|",
    latencyLine("all calls", latencies),
    ...apartLines(report),
    ...Object.entries(byKind).map(([kind, each]) => latencyLine(kind, each)),
    latencyLine("due to sent", lateness),
    "",
    `Errors: ${failures.length === 0 ? "none" : failures.join(", ")}. Missed, with ${maxInFlight} calls in flight: ${missed}.`,
    "",
    "| what | first | last | rise | grows above | per hour | verdict |",
    "|---|---:|---:|---:|---:|---:|---|",
    ...measures.map((measure) => trendLine(measure, report.points)),
    ...loopLines(report.points),
  ].join("\n");
}

/** When, where and what a soak was, in one line. */
export function describeSoak(report: SoakReport): string {
  const { minutes, callsPerSecond, broker, seed } = report;
  return [
    describeHost(report),
    report.workDirs,
    `${brokers[broker]}, ${number(minutes)} minutes at ${number(callsPerSecond)} calls a second, seed ${seed}`,
  ].join("; ");
}

function latencyLine(what: string, of: Latencies): string {
  const times = [of.p50Ms, of.p90Ms, of.p99Ms, of.p999Ms, of.maxMs].map(time);
  return `| ${[what, of.count, ...times].join(" | ")} |`;
}

/** Of successes and of failures, where there were some. */
function apartLines({ succeeded, failed }: LoadResult): readonly string[] {
  if (succeeded === undefined || failed === undefined || failed.count === 0) return [];
  return [latencyLine("successful calls", succeeded), latencyLine("failed calls", failed)];
}

function trendLine({ what, slack, valueOf }: Measure, points: readonly Point[]): string {
  const values = points.map((point) => ({ atSeconds: point.atSeconds, value: valueOf(point) }));
  const [first, last] = [values[0]?.value ?? 0, values.at(-1)?.value ?? 0];
  if (slack === undefined) {
    const most = Math.max(...values.map(({ value }) => value));
    return `| ${[what, number(first), number(last), "", "", "", `at most ${number(most)}`].join(" | ")} |`;
  }
  const trend = trendOf(values, slack);
  return `| ${[what, number(first), number(last), ...trendCells(trend)].join(" | ")} |`;
}

function trendCells({ rise, threshold, perHour, verdict }: Trend): readonly string[] {
  if (verdict === "too short") return ["", number(threshold), "", verdict];
  return [number(rise), number(threshold), number(perHour), verdict];
}

function loopLines(points: readonly Point[]): readonly string[] {
  if (points.length === 0) return [];
  const p99 = Math.max(...points.map(({ loopP99Ms }) => loopP99Ms));
  const max = Math.max(...points.map(({ loopMaxMs }) => loopMaxMs));
  return [
    "",
    `The event loop was late by at most ${time(max)} ms, and in its worst second by ${time(p99)} ms (p99).`,
  ];
}

function number(value: number): string {
  return String(Number(value.toFixed(1)));
}

function time(ms: number): string {
  return ms.toFixed(ms < 10 ? 2 : 1);
}
