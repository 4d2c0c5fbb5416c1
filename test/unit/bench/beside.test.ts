/**
 * What a run beside another checkout says as Markdown.
 */
import { expect, test } from "vitest";
import { type BesideReport, formatBeside } from "../../../bench/beside/table.ts";

const side = { p10Ms: 1, p50Ms: 2, p90Ms: 3, callsPerSecond: 4, cpuMsPerCall: 5 };

const report: BesideReport = {
  date: "2026-11-29",
  commit: "abc1234",
  machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
  kernel: "6.12",
  versions: {},
  rounds: 5,
  before: "def5678",
  rows: [{ tool: "Python typical", before: side, after: { ...side, p50Ms: 1 } }],
};

const artifacts = { wallMs: 800, cpuMs: 400, loopMs: 100 };

test("a report has a line for each number, with its part of the number before", () => {
  const after = { ...artifacts, cpuMs: 100 };
  const row = { what: "512 MB in", before: artifacts, after };
  const lines = formatBeside({ ...report, artifacts: [row] }).split("\n");
  expect(lines[0]).toContain("beside def5678");
  expect(lines).toContain("| Python typical | ms, p50 | 2.0 | 1.0 | 0.50 | ≤ 0.55 ✓ |");
  expect(lines).toContain(
    "| Python typical | processor ms per call | 5.0 | 5.0 | 1.00 | ≤ 0.8 ✗ |",
  );
  expect(lines).toContain("| 512 MB in | processor ms per call | 400.0 | 100.0 | 0.25 |  |");
  expect(lines).toContain("| 512 MB in | of it the event loop | 100.0 | 100.0 | 1.00 |  |");
});

test("a report tells whether calls became as many as they should", () => {
  const rowOf = (callsPerSecond: number) => {
    return { tool: "JavaScript typical", before: side, after: { ...side, callsPerSecond } };
  };
  const linesOf = (calls: number) => formatBeside({ ...report, rows: [rowOf(calls)] });
  expect(linesOf(18)).toContain("| calls per second | 4.0 | 18.0 | 4.50 | ≥ 4.5 ✓ |");
  expect(linesOf(17)).toContain("| calls per second | 4.0 | 17.0 | 4.25 | ≥ 4.5 ✗ |");
});

test("a report says nothing of processor time that nobody counted, nor of calls that were not made", () => {
  const uncounted = { ...artifacts, cpuMs: undefined };
  const row = { what: "512 MB in", before: uncounted, after: uncounted };
  expect(formatBeside({ ...report, artifacts: [row] })).toContain(
    "| 512 MB in | processor ms per call |  |  |  |  |",
  );
  expect(formatBeside(report)).not.toContain("MB");
});
