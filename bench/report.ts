/**
 * A benchmark run with everything that its numbers depend on, as JSON for comparisons.
 */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Measurement, inFlight } from "./measure.ts";
import { floorRow } from "./names.ts";
import type { Measured } from "./rows.ts";

const run = promisify(execFile);

/** What the numbers of a run depend on. */
export interface BenchHost {
  readonly date: string;
  /** Commit of the project; ends in `+` when files had changed since. */
  readonly commit: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryBytes: number };
  readonly kernel: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** One run, as `bench/results/*.json` holds it. Times in milliseconds, memory in bytes. */
export interface BenchReport extends BenchHost {
  /**
   * What this host's control groups keep, and how long joining one took. Runs of old do not say.
   */
  readonly controlGroups?: string;
  /** What the work directories lay on. Runs of old do not say: on a disk. */
  readonly workDirs?: string;
  readonly rounds: number;
  readonly inFlight: number;
  /** Name of the row that the others are divided by. */
  readonly baseline: string;
  readonly rows: readonly Measurement[];
}

/** Makes the report of a run. */
export async function makeReport(
  root: string,
  rounds: number,
  { rows, controlGroups, workDirs }: Measured,
): Promise<BenchReport> {
  const host = await hostOf(root);
  return { ...host, controlGroups, workDirs, rounds, inFlight, baseline: floorRow, rows };
}

/** Asks the machine about itself. */
export async function hostOf(root: string): Promise<BenchHost> {
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
  };
}

/** What a run's numbers depend on, in one line. */
export function describeRun(
  report: BenchHost & Pick<BenchReport, "controlGroups" | "workDirs" | "rounds">,
): string {
  return [
    describeHost(report),
    ...[report.controlGroups, report.workDirs].filter((words) => words !== undefined),
    `${report.rounds} rounds, milliseconds`,
  ].join("; ");
}

/** When, of what and on what machine a run was. */
export function describeHost({ date, commit, machine, kernel, versions }: BenchHost): string {
  return [
    `${date}, commit ${commit}`,
    `${machine.cores} cores (${machine.cpu})`,
    `Linux ${kernel}`,
    ...Object.entries(versions).map(([name, version]) => versionText(name, version)),
  ].join("; ");
}

/** Writes the report below `bench/results/` and returns its path. */
export async function saveReport(root: string, report: BenchHost, kind = ""): Promise<string> {
  const directory = join(root, "bench/results");
  await mkdir(directory, { recursive: true });
  const path = join(
    directory,
    `${report.date}-${report.commit.replace("+", "-changed")}${kind}.json`,
  );
  await writeFile(path, `${JSON.stringify(report, undefined, 2)}\n`);
  return path;
}

function versionText(name: string, version: string): string {
  return version.toLowerCase().startsWith(name) ? version : `${name} ${version}`;
}
