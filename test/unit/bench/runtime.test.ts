/**
 * What a benchmark run says of executions of the library.
 */
import { expect, test } from "vitest";
import type { Measurement } from "../../../bench/measure.ts";
import { floorRow } from "../../../bench/names.ts";
import { dockerRow, engineRow, wasmRow } from "../../../bench/runtime/aims.ts";
import { type RuntimeReport, formatRuntime } from "../../../bench/runtime/table.ts";

function row(name: string, medianMs: number): Measurement {
  return { name, medianMs, p90Ms: medianMs, p99Ms: medianMs };
}

function textOf(more: Partial<RuntimeReport>): string {
  return formatRuntime({
    ...{ date: "2026-11-29", commit: "abc1234", kernel: "6.12", versions: {}, rounds: 5 },
    machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
    ...{ rows: [], docker: "container engine 20" },
    ...more,
  });
}

test("an execution in wasm is compared with the floor", () => {
  const rows = [row(floorRow, 0.5), row(wasmRow, 5)];
  expect(textOf({ rows })).toContain(`| ${floorRow} | 5.00 | ≤ 10 × the floor ✓ |`);
  expect(textOf({ rows: [row(floorRow, 0.5), row(wasmRow, 5.01)] })).toContain("the floor ✗ |");
});

test("an execution in a container is compared with the engine's own time", () => {
  const others = [row(floorRow, 1), row(engineRow, 200)];
  const rows = [...others, row(dockerRow, 229)];
  expect(textOf({ rows })).toContain(`| ${engineRow} | 230.0 | ≤ 1.15 × that ✓ |`);
  expect(textOf({ rows: [...others, row(dockerRow, 231)] })).toContain("that ✗ |");
});

test("a run says which engine ran containers, or why none did", () => {
  expect(textOf({})).toContain("5 rounds, milliseconds; docker: container engine 20.\n");
  const docker = "not measured, needs root, to start containers";
  expect(textOf({ docker })).toContain(`; docker: ${docker}.\n`);
});
