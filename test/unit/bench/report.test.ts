/**
 * What a benchmark run says beside its table.
 */
import { expect, test } from "vitest";
import type { Measurement } from "../../../bench/measure.ts";
import { type BenchReport, formatReport, hardeningRows } from "../../../bench/report.ts";

function row(name: string, medianMs: number): Measurement {
  return { name, medianMs, p90Ms: medianMs, p99Ms: medianMs, callsPerSecond: 1 };
}

const report: BenchReport = {
  date: "2026-11-21",
  commit: "abc1234",
  machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
  kernel: "6.12",
  versions: {},
  controlGroups: "cgroup v2 (memory, processes, cpu), joined in 0.2 ms",
  rounds: 5,
  inFlight: 4,
  baseline: hardeningRows.from,
  rows: [
    row(hardeningRows.from, 4.1),
    row(hardeningRows.to, 8.6),
    row(hardeningRows.toByGuard, 7.3),
  ],
};

test("a report says what hardening costs, with control groups and without, from its own rows", () => {
  expect(formatReport(report)).toContain(
    "full hardening costs 4.5 ms, and 3.2 ms where the guard alone keeps totals",
  );
});

test("a report names the control groups of its machine", () => {
  expect(formatReport(report).split("\n")[0]).toContain("joined in 0.2 ms");
});

test("a report of a run of old says nothing of what was not measured then", () => {
  const { controlGroups: _, ...rest } = report;
  const old = formatReport({ ...rest, rows: [row(hardeningRows.from, 4.1)] });
  expect(old).not.toContain("cgroup");
  expect(old).not.toContain("costs");
});
