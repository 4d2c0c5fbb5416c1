/**
 * What the plots of a benchmark show.
 */
import { describe, expect, test } from "vitest";
import type { Measurement } from "../../../bench/measure.ts";
import { plotThroughput, plotTimes } from "../../../bench/plot.ts";
import type { BenchReport } from "../../../bench/report.ts";

function row(name: string, medianMs: number, callsPerSecond?: number): Measurement {
  const kind = callsPerSecond === undefined ? "floor" : "template";
  return { name, kind, medianMs, p90Ms: 2 * medianMs, p99Ms: 10 * medianMs, callsPerSecond };
}

const report: BenchReport = {
  date: "2026-11-21",
  commit: "abc1234",
  machine: { cpu: "a <fast> processor", cores: 2, memoryBytes: 1 },
  kernel: "6.12",
  versions: {},
  rounds: 5,
  inFlight: 4,
  baseline: "slow",
  rows: [row("floor & all", 1), row("slow", 10, 100), row("quick", 0.1, 400)],
};

/** Where the medians are, from left to right. */
function dots(svg: string): number[] {
  return [...svg.matchAll(/<circle cx="([\d.]+)" cy="\d+" r="4"\/><\/g><text class="value"/g)].map(
    ([, x]) => Number(x),
  );
}

/** Where the bars end. */
function bars(svg: string): number[] {
  return [...svg.matchAll(/<path class="bar" d="M[\d.]+ \d+H([\d.]+)"\/>/g)].map(([, x]) =>
    Number(x),
  );
}

test("medians of the same ratio are as far apart as each other", () => {
  const [one, ten, tenth] = dots(plotTimes(report)) as [number, number, number];
  expect(ten).toBeGreaterThan(one);
  expect(ten - one).toBeCloseTo(one - tenth, 0);
});

test("a row's line goes to its p99", () => {
  const svg = plotTimes(report);
  const [, slow] = dots(svg);
  expect(svg).toContain(`<path d="M${dots(svg)[0]} 86H${slow}m0 -4v8"/>`);
});

test("bars of the throughput are as long as it is, by core, for rows that have one", () => {
  const svg = plotThroughput(report);
  const [slow, quick] = bars(svg).map((x) => x - 300) as [number, number];
  expect(bars(svg)).toHaveLength(2);
  expect(quick / slow).toBeCloseTo(4, 1);
  expect(svg).toContain(">200</text>");
});

describe.each([
  ["times", plotTimes],
  ["throughput", plotThroughput],
])("the plot of %s", (_, plot) => {
  test("has colours for dark pages", () => {
    expect(plot(report)).toContain("@media (prefers-color-scheme:dark)");
  });

  test("is well-formed, whatever rows and machines are called", () => {
    const svg = plot(report);
    expect(svg).toContain("a &lt;fast&gt; processor");
    expect(svg).not.toMatch(/&(?!amp;|lt;|gt;)/);
    const opened = [...svg.matchAll(/<(\w+)(?: [^>]*)?(?<!\/)>/g)].map(([, name]) => name).sort();
    const closed = [...svg.matchAll(/<\/(\w+)>/g)].map(([, name]) => name).sort();
    expect(opened).toEqual(closed);
  });

  test("needs nothing from elsewhere and runs nothing", () => {
    expect(plot(report)).not.toMatch(/<script|href|url\(|@import/);
  });
});
