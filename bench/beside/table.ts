/**
 * What a change has brought, as Markdown.
 */
import { type BenchHost, describeRun } from "../report.ts";
import type { ArtifactRow } from "./artifacts.ts";
import { lightTool, pandasTool } from "./names.ts";
import type { BesideRow, MeasuredBeside } from "./run.ts";

/** What after / before should be: at most, or at least. */
type Aim = { readonly most: number } | { readonly least: number };

const aims: Readonly<Record<string, Readonly<Partial<Record<"p50" | "calls" | "cpu", Aim>>>>> = {
  "Python typical": { p50: { most: 0.55 }, cpu: { most: 0.8 } },
  "JavaScript typical": { p50: { most: 0.4 }, calls: { least: 4.5 }, cpu: { most: 0.25 } },
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
    ...report.rows.flatMap(linesOfCalls),
    ...(report.artifacts ?? []).flatMap(linesOfArtifacts),
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

function linesOfCalls({ tool, before, after }: BesideRow): readonly string[] {
  const aim = aims[tool];
  return [
    line([tool, "ms, p10"], before.p10Ms, after.p10Ms),
    line([tool, "ms, p50"], before.p50Ms, after.p50Ms, aim?.p50),
    line([tool, "ms, p90"], before.p90Ms, after.p90Ms),
    line([tool, "calls per second"], before.callsPerSecond, after.callsPerSecond, aim?.calls),
    line([tool, "processor ms per call"], before.cpuMsPerCall, after.cpuMsPerCall, aim?.cpu),
  ];
}

function linesOfArtifacts({ what, before, after }: ArtifactRow): readonly string[] {
  return [
    line([what, "ms, least"], before.wallMs, after.wallMs),
    line([what, "processor ms per call"], before.cpuMs, after.cpuMs),
    line([what, "of it the event loop"], before.loopMs, after.loopMs),
  ];
}

function line(
  names: readonly [tool: string, what: string],
  before: number | undefined,
  after: number | undefined,
  aim?: Aim,
): string {
  const numbers = [before, after].map((value) => value?.toFixed(1) ?? "");
  const ratio = before === undefined || after === undefined ? undefined : after / before;
  const verdict = aim === undefined || ratio === undefined ? "" : judge(ratio, aim);
  return `| ${[...names, ...numbers, ratio?.toFixed(2) ?? "", verdict].join(" | ")} |`;
}

function judge(ratio: number, aim: Aim): string {
  return "most" in aim
    ? `≤ ${aim.most} ${ratio <= aim.most ? "✓" : "✗"}`
    : `≥ ${aim.least} ${ratio >= aim.least ? "✓" : "✗"}`;
}
