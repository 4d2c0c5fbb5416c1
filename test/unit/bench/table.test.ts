/**
 * What a benchmark run says of itself as Markdown.
 */
import { expect, test } from "vitest";
import { aimedFloorMs } from "../../../bench/aims.ts";
import type { Measurement } from "../../../bench/measure.ts";
import {
  batchRows,
  floorRow,
  hardeningRows,
  loopRows,
  resultRow,
  startRow,
} from "../../../bench/names.ts";
import type { BenchReport } from "../../../bench/report.ts";
import { formatReport } from "../../../bench/table.ts";
import { typicalCold, typicalPython } from "../../../bench/tools.ts";

function row(name: string, medianMs: number, more: Partial<Measurement> = {}): Measurement {
  return { name, medianMs, p90Ms: medianMs, p99Ms: medianMs, callsPerSecond: 2, ...more };
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

function lineOf(name: string, rows: readonly Measurement[]): string | undefined {
  const lines = formatReport({ ...report, rows }).split("\n");
  return lines.find((line) => line.startsWith(`| ${name} |`));
}

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
  expect(old).not.toContain("aims");
});

test("a row tells its throughput by core, how its calls came to their sandboxes, and what one that waits takes", () => {
  const name = startRow(typicalPython);
  const line = lineOf(name, [
    row(name, 0.5, {
      kind: "template",
      callsPerSecond: 302,
      timedStarts: { hits: 4, misses: 1, cold: 0 },
      saturatedStarts: { hits: 20, misses: 3, cold: 2 },
      parkedBytes: 1.5 * 1024 * 1024,
    }),
  ]);
  expect(line).toContain("| 151 | 4, 1, 0 | 20, 3, 2 | 1.5 |");
});

test("a batch that workers share is compared with that of one", () => {
  const [{ alone, shared }] = batchRows as [(typeof batchRows)[number]];
  const rows = [row(alone, 8_000, { kind: "batch" }), row(shared, 2_100, { kind: "batch" })];
  expect(lineOf(shared, rows)).toContain("| × one worker ≥ 3.5 ✓ |");
  expect(lineOf(shared, [row(alone, 7_000), row(shared, 2_100)])).toContain("≥ 3.5 ✗");
  // Nor with the floor: it is not one call.
  expect(lineOf(shared, [row(report.baseline, 1), ...rows])).toContain("| 2100.0 |  |");
});

test("a row has its aims beside it, each with whether it was reached", () => {
  const name = startRow(typicalPython);
  const rows = [
    row(startRow(typicalCold("Python")), 40, { callsPerSecond: 50 }),
    row(name, 0.5, { callsPerSecond: 302, parkedBytes: 5 * 1024 * 1024 }),
  ];
  expect(lineOf(name, rows)).toContain(
    "| MB ≤ 4 ✗; per second and core ≥ 150 ✓; × cold per second ≥ 7 ✗ |",
  );
});

test("a report names the aims that were not reached with what was measured", () => {
  const rows = [row(loopRows.load, 1), row(loopRows.flood, 1, { p99Ms: 12.34 })];
  expect(formatReport({ ...report, rows })).toContain(
    `Of 2 aims 1 are reached as they stand.\n\nNot reached:\n\n- ${loopRows.flood}: p99 ≤ 10 ✗; measured 12.3`,
  );
});

test("a time that is missed is compared with what it would be on a machine of this one's speed", () => {
  const slow = row(floorRow, 3 * aimedFloorMs);
  const name = resultRow({ ...typicalPython });
  const missed = lineOf(name, [slow, row(name, 2.9, { p99Ms: 15.1 })]);
  expect(missed).toContain("| median ≤ 1 ✗, ≤ 3.00 ✓; p99 ≤ 5 ✗, ≤ 15.0 ✗ |");
  const rate = startRow(typicalPython);
  const enough = lineOf(rate, [slow, row(rate, 9, { callsPerSecond: 102 })]);
  expect(enough).toContain("| per second and core ≥ 150 ✗, ≥ 50.0 ✓ |");
});

test("what is no matter of a machine's speed is not excused by it", () => {
  const slow = row(floorRow, 100 * aimedFloorMs);
  const line = lineOf(loopRows.load, [slow, row(loopRows.load, 1, { p99Ms: 11 })]);
  expect(line).toContain("| p99 ≤ 10 ✗ |");
});

test("a report says how many aims are reached as they stand, and how many by the speed of the machine", () => {
  const slow = row(floorRow, 2 * aimedFloorMs);
  const rows = [slow, row(resultRow(typicalPython), 1.5, { p99Ms: 20 }), row(loopRows.load, 1)];
  expect(formatReport({ ...report, rows })).toContain(
    "Of 3 aims 1 are reached as they stand, and 1 more as multiples of the floor, which takes 1.00 here and took 0.50 where they were set.\n\nNot reached:\n\n- acquire to result",
  );
});

test("a report says so when all aims are reached", () => {
  const rows = [row(loopRows.load, 1), row(loopRows.flood, 1)];
  expect(formatReport({ ...report, rows })).toContain("All 2 aims are reached.");
});
