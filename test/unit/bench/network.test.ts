/**
 * What a benchmark run says of networks, and its tools.
 */
import { expect, test } from "vitest";
import type { Measurement } from "../../../bench/measure.ts";
import { type MeasuredPair, networkTools } from "../../../bench/network/pairs.ts";
import { type NetworkReport, formatNetwork } from "../../../bench/network/table.ts";
import { manifestOf, nameOf } from "../../../bench/tools.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";

function row(medianMs: number, p90Ms: number): Measurement {
  return { name: "", medianMs, p90Ms, p99Ms: p90Ms };
}

function linesOf(more: Partial<NetworkReport>): string {
  return formatNetwork({
    ...{ date: "2026-11-27", commit: "abc1234", kernel: "6.12", versions: {}, rounds: 5 },
    machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
    ...{ starts: [], transfers: [], loads: [] },
    ...more,
  });
}

test("a pair has a ratio and whether that is low enough", () => {
  const pair: MeasuredPair = { what: "w", maxRatio: 1.7, listed: row(17, 20), other: row(10, 11) };
  expect(linesOf({ starts: [pair] })).toContain(
    "| w | 17.0 | 20.0 | 10.0 | 11.0 | 1.70 | ≤ 1.7 ✓ |",
  );
  expect(linesOf({ transfers: [{ ...pair, maxRatio: 1.6 }] })).toContain("≤ 1.6 ✗");
});

test("a pair without a ratio to keep is compared with the noise of the other", () => {
  const pair: MeasuredPair = { what: "w", listed: row(11, 20), other: row(10, 11) };
  expect(linesOf({ starts: [pair] })).toContain("its p90 ✓");
  expect(linesOf({ starts: [{ ...pair, listed: row(11.1, 11.1) }] })).toContain("its p90 ✗");
});

test("the load of a worker is judged by event loop and memory", () => {
  const loop = { medianMs: 1, p90Ms: 1, p99Ms: 20.1, maxMs: 30 };
  const load = {
    work: "upload",
    bytesPerSecond: 200 * 2 ** 20,
    loop,
    growthBytes: 2 ** 25,
  } as const;
  expect(linesOf({ loads: [load] })).toContain("| upload | 200 | 20.1 | ≤ 20 ✗ | +32 | ≤ 32 ✓ |");
});

test("each tool has a list or no network, in every start mode", () => {
  const options = { path: "manifest.yaml", profileNames: ["standard"] };
  const { tools } = parseManifest(Buffer.from(manifestOf(networkTools)), options).manifest;
  for (const tool of networkTools) {
    const { network, start } = tools.get(nameOf(tool))!;
    expect(start).toBe(tool.start);
    expect(network === "none" ? "none" : "list").toBe(tool.network);
    expect(["none", "list"].includes(tool.network!)).toBe(true);
  }
});
