/**
 * The moves of artifacts as Markdown.
 */
import { type BenchHost, describeRun } from "../report.ts";
import type { Growth } from "./growth.ts";
import type { Move } from "./moves.ts";

/** Results of a run with artifacts. */
export interface MeasuredArtifacts {
  readonly moves: readonly Move[];
  readonly growths: readonly Growth[];
}

/** One run, as `bench/results/*-artifacts.json` holds it. */
export interface ArtifactReport extends MeasuredArtifacts, BenchHost {
  readonly rounds: number;
}

/** The times of the bare means that a move may take, from this size on. */
const aim = { ratio: 1.2, fromBytes: 1_000_000 } as const;

/** Bytes by which resident memory may grow. */
const maxGrowthBytes = 100_000_000;

/** The report as Markdown. */
export function formatArtifacts(report: ArtifactReport): string {
  const { moves, growths } = report;
  return [
    `${describeRun(report)}.`,
    "",
    "| what | median | p90 | bare | × bare | aim |",
    "|---|---:|---:|---:|---:|---|",
    ...moves.map(lineOf),
    "",
    "| what | resident memory, MB | aim |",
    "|---|---:|---|",
    ...growths.map(({ store, work, bytes, growthBytes }) => {
      const growth = (growthBytes / 1_000_000).toFixed(0);
      return `| ${work} ${sizeText(bytes)}, ${store} | +${growth} | < 100 ${mark(growthBytes < maxGrowthBytes)} |`;
    }),
  ].join("\n");
}

function lineOf({ store, work, bytes, medianMs, p90Ms, bareMedianMs }: Move): string {
  const ratio = medianMs / bareMedianMs;
  const judged = bytes < aim.fromBytes ? "" : `≤ ${aim.ratio} ${mark(ratio <= aim.ratio)}`;
  const cells = [medianMs, p90Ms, bareMedianMs].map((ms) => ms.toFixed(ms < 10 ? 2 : 1));
  return `| ${work} ${sizeText(bytes)}, ${store} | ${cells.join(" | ")} | ${ratio.toFixed(2)} | ${judged} |`;
}

function sizeText(bytes: number): string {
  if (bytes >= 1_000_000_000) return `${bytes / 1_000_000_000} GB`;
  return bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${bytes / 1_000} kB`;
}

function mark(isReached: boolean): string {
  return isReached ? "✓" : "✗";
}
