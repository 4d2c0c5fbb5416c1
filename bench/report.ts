/**
 * A benchmark run as a table for people and as JSON for comparisons.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Measurement, inFlight } from "./measure.ts";

const run = promisify(execFile);

/** One run, as `bench/results/*.json` holds it. Times in milliseconds, memory in bytes. */
export interface BenchReport {
  readonly date: string;
  /** Commit of the project; ends in `+` when files had changed since. */
  readonly commit: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryBytes: number };
  readonly kernel: string;
  readonly versions: Readonly<Record<string, string>>;
  /** What this host's control groups keep, and how long joining one took. Runs of old do not say. */
  readonly controlGroups?: string;
  readonly rounds: number;
  readonly inFlight: number;
  /** Name of the row that the others are divided by. */
  readonly baseline: string;
  readonly rows: readonly Measurement[];
}

/** Asks the machine about itself and makes the report of a run. */
export async function makeReport(
  root: string,
  rounds: number,
  { baseline, controlGroups }: { readonly baseline: string; readonly controlGroups: string },
  rows: readonly Measurement[],
): Promise<BenchReport> {
  const output = async (file: string, ...argv: string[]): Promise<string> =>
    (await run(file, argv, { cwd: root })).stdout.trim();
  const changed = await output("git", "status", "--porcelain", "--untracked-files=no");
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: `${await output("git", "rev-parse", "--short", "HEAD")}${changed === "" ? "" : "+"}`,
    machine: { cpu: cpus()[0]?.model ?? "", cores: cpus().length, memoryBytes: totalmem() },
    kernel: release(),
    versions: {
      node: process.version,
      python: await output("/usr/bin/python3", "--version"),
      bubblewrap: await output("/usr/bin/bwrap", "--version"),
    },
    controlGroups,
    rounds,
    inFlight,
    baseline,
    rows,
  };
}

/** Writes the report below `bench/results/` and returns its path. */
export async function saveReport(root: string, report: BenchReport): Promise<string> {
  const directory = join(root, "bench/results");
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${report.date}-${report.commit.replace("+", "-changed")}.json`);
  await writeFile(path, `${JSON.stringify(report, undefined, 2)}\n`);
  return path;
}

/** The report as Markdown: a line about the machine, the table, and what hardening costs. */
export function formatReport(report: BenchReport): string {
  const { versions, machine } = report;
  const baseMs = report.rows.find(({ name }) => name === report.baseline)?.medianMs ?? Number.NaN;
  const facts = [
    `${report.date}, commit ${report.commit}`,
    `${machine.cores} cores (${machine.cpu})`,
    `Linux ${report.kernel}`,
    ...Object.entries(versions).map(([name, version]) => versionText(name, version)),
    ...(report.controlGroups === undefined ? [] : [report.controlGroups]),
    `${report.rounds} rounds, milliseconds`,
  ];
  return [
    `${facts.join("; ")}.`,
    "",
    `| what | median | p90 | p99 | × ${report.baseline} | per second, ${report.inFlight} at once |`,
    "|---|---:|---:|---:|---:|---:|",
    ...report.rows.map((row) => {
      const times = [row.medianMs, row.p90Ms, row.p99Ms].map((ms) => ms.toFixed(1));
      const ratio = (row.medianMs / baseMs).toFixed(2);
      return `| ${[row.name, ...times, ratio, row.callsPerSecond.toFixed(0)].join(" | ")} |`;
    }),
    ...hardeningCost(report.rows),
  ].join("\n");
}

/** Names of the rows by which it is seen what hardening costs. */
export const hardeningRows = {
  from: "design document's bwrap + true",
  to: "hardened sandbox + true",
  toByGuard: "hardened sandbox + true, guard alone",
} as const;

/** Milliseconds that hardening is to cost at most. */
const hardeningAimMs = 4;

/** A paragraph; none for a run without these rows. */
function hardeningCost(rows: readonly Measurement[]): readonly string[] {
  const medianOf = (wanted: string): number | undefined =>
    rows.find(({ name }) => name === wanted)?.medianMs;
  const [from, to, toByGuard] = [
    medianOf(hardeningRows.from),
    medianOf(hardeningRows.to),
    medianOf(hardeningRows.toByGuard),
  ];
  if (from === undefined || to === undefined || toByGuard === undefined) return [];
  const [full, byGuard] = [to - from, toByGuard - from].map((ms) => ms.toFixed(1));
  return [
    "",
    `Over the design document's command line full hardening costs ${full} ms, and ${byGuard} ms where the guard alone keeps totals; the aim is below ${hardeningAimMs} ms.`,
  ];
}

/** Replaces what stands between the two marks of `docs/benchmarks.md` by the report. */
export async function writeIntoDocument(root: string, report: BenchReport): Promise<void> {
  const path = join(root, "docs/benchmarks.md");
  const text = await readFile(path, "utf8");
  const [before, after] = [text.indexOf(startMark), text.indexOf(endMark)];
  if (before === -1 || after < before) throw new Error(`${path} lacks ${startMark} or ${endMark}`);
  const head = text.slice(0, before + startMark.length);
  await writeFile(path, `${head}\n\n${formatReport(report)}\n\n${text.slice(after)}`);
}

const startMark = "<!-- results: written by npm run bench -- --document -->";
const endMark = "<!-- end of results -->";

function versionText(name: string, version: string): string {
  return version.toLowerCase().startsWith(name) ? version : `${name} ${version}`;
}
