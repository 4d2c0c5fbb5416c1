/**
 * Puts a run into docs/benchmarks.md, that of a sizing into docs/sizing.md: its table between two
 * marks, its plots beside.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ArtifactReport, formatArtifacts } from "./artifacts/table.ts";
import { type BesideReport, formatBeside } from "./beside/table.ts";
import { type GatewayReport, formatGateway } from "./gateway/table.ts";
import { type NetworkReport, formatNetwork } from "./network/table.ts";
import { plotThroughput, plotTimes } from "./plot.ts";
import type { BenchReport } from "./report.ts";
import { type RuntimeReport, formatRuntime } from "./runtime/table.ts";
import { type SizingReport, formatServed, formatSizing } from "./sizing/table.ts";
import { plotSoak } from "./soak/plot.ts";
import { type SoakReport, formatSoak } from "./soak/table.ts";
import { formatReport } from "./table.ts";

/** The page, and its plots with how each is drawn. Paths are from the project's root. */
export const documentPath = "docs/benchmarks.md";
export const plots: Readonly<Record<string, (report: BenchReport) => string>> = {
  "docs/benchmarks-times.svg": plotTimes,
  "docs/benchmarks-throughput.svg": plotThroughput,
};

/** The page of a sizing. */
export const sizingDocumentPath = "docs/sizing.md";

/** The plot of a soak, beside the page. */
export const soakPlotPath = "docs/benchmarks-soak.svg";

/** Replaces the results of calls by the report, and the plots by its own. */
export async function writeIntoDocument(root: string, report: BenchReport): Promise<void> {
  await replaceResults(root, "results", formatReport(report));
  for (const [name, plot] of Object.entries(plots)) {
    await writeFile(join(root, name), plot(report));
  }
}

/** Replaces the results of networks by the report. */
export async function writeNetworkIntoDocument(root: string, report: NetworkReport): Promise<void> {
  await replaceResults(root, "network results", formatNetwork(report));
}

/** Replaces the results of artifacts by the report. */
export async function writeArtifactsIntoDocument(
  root: string,
  report: ArtifactReport,
): Promise<void> {
  await replaceResults(root, "artifact results", formatArtifacts(report));
}

/** Replaces the results of calls by tools by the report. */
export async function writeGatewayIntoDocument(root: string, report: GatewayReport): Promise<void> {
  await replaceResults(root, "gateway results", formatGateway(report));
}

/** Replaces the results of the library's executions by the report. */
export async function writeRuntimeIntoDocument(root: string, report: RuntimeReport): Promise<void> {
  await replaceResults(root, "runtime results", formatRuntime(report));
}

/** Replaces the results of a worker beside another by the report. */
export async function writeBesideIntoDocument(root: string, report: BesideReport): Promise<void> {
  await replaceResults(root, "beside results", formatBeside(report));
}

/** Replaces the results of a soak by the report, and its plot. */
export async function writeSoakIntoDocument(root: string, report: SoakReport): Promise<void> {
  await replaceResults(root, "soak results", formatSoak(report));
  await writeFile(join(root, soakPlotPath), plotSoak(report));
}

/** Replaces the results of a sizing by the report, and what one worker serves by it. */
export async function writeSizingIntoDocument(root: string, report: SizingReport): Promise<void> {
  await replaceResults(root, "served", formatServed(report), sizingDocumentPath);
  await replaceResults(root, "sizing results", formatSizing(report), sizingDocumentPath);
}

/** Replaces the text between two marks of a page. */
async function replaceResults(
  root: string,
  what: string,
  results: string,
  page = documentPath,
): Promise<void> {
  const [start, end] = [
    `<!-- ${what}: written by npm run bench -- --document -->`,
    `<!-- end of ${what} -->`,
  ];
  const path = join(root, page);
  const text = await readFile(path, "utf8");
  const [before, after] = [text.indexOf(start), text.indexOf(end)];
  if (before === -1 || after < before) throw new Error(`${path} lacks ${start} or ${end}`);
  const head = text.slice(0, before + start.length);
  await writeFile(path, `${head}\n\n${results}\n\n${text.slice(after)}`);
}
