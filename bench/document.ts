/**
 * Puts a run into docs/benchmarks.md: its table between two marks, its plots beside.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { plotThroughput, plotTimes } from "./plot.ts";
import type { BenchReport } from "./report.ts";
import { formatReport } from "./table.ts";

/** The page, and its plots with how each is drawn. Paths are from the project's root. */
export const documentPath = "docs/benchmarks.md";
export const plots: Readonly<Record<string, (report: BenchReport) => string>> = {
  "docs/benchmarks-times.svg": plotTimes,
  "docs/benchmarks-throughput.svg": plotThroughput,
};

/** Replaces what stands between the two marks by the report, and the plots by its own. */
export async function writeIntoDocument(root: string, report: BenchReport): Promise<void> {
  const path = join(root, documentPath);
  const text = await readFile(path, "utf8");
  const [before, after] = [text.indexOf(startMark), text.indexOf(endMark)];
  if (before === -1 || after < before) throw new Error(`${path} lacks ${startMark} or ${endMark}`);
  const head = text.slice(0, before + startMark.length);
  await writeFile(path, `${head}\n\n${formatReport(report)}\n\n${text.slice(after)}`);
  for (const [name, plot] of Object.entries(plots)) {
    await writeFile(join(root, name), plot(report));
  }
}

const startMark = "<!-- results: written by npm run bench -- --document -->";
const endMark = "<!-- end of results -->";
