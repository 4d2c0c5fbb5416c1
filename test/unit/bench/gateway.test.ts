/**
 * What a benchmark run says of calls by tools, and its tools.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  byAgentRow,
  byToolRow,
  pausedRow,
  innerRow,
  listsRow,
} from "../../../bench/gateway/aims.ts";
import { mostAtOnce } from "../../../bench/gateway/overlap.ts";
import { type GatewayReport, formatGateway } from "../../../bench/gateway/table.ts";
import { gatewayEntries, lightTool } from "../../../bench/gateway/tools.ts";
import type { Measurement } from "../../../bench/measure.ts";
import { floorRow } from "../../../bench/names.ts";
import { lightPython, manifestOf, nameOf, toolsDir } from "../../../bench/tools.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";

function row(name: string, medianMs: number): Measurement {
  return { name, medianMs, p90Ms: medianMs, p99Ms: medianMs };
}

const report: GatewayReport = {
  ...{ date: "2026-11-29", commit: "abc1234", kernel: "6.12", versions: {}, rounds: 5 },
  machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
  ...{ rows: [], floods: [] },
  programs: { programs: 100, calls: 10, slots: 4, ended: 100, mostAtOnce: 4, seconds: 12.34 },
};

function textOf(more: Partial<GatewayReport>): string {
  return formatGateway({ ...report, ...more });
}

describe("a row is compared", () => {
  test("with the floor", () => {
    const rows = [row(floorRow, 1), row(listsRow("Python"), 0.25)];
    expect(textOf({ rows })).toContain(`| 0.250 | ${floorRow} | 0.250 | ≤ 0.25 × the floor ✓ |`);
    const slow = [row(floorRow, 1), row(listsRow("JavaScript"), 0.251)];
    expect(textOf({ rows: slow })).toContain("≤ 0.25 × the floor ✗ |");
  });

  test("with another and the floor", () => {
    const others = [row(floorRow, 1), row(pausedRow, 4)];
    const rows = [...others, row(innerRow("Python"), 4.5)];
    expect(textOf({ rows })).toContain(`| ${pausedRow} | 4.50 | ≤ the same + 0.5 × the floor ✓`);
    expect(textOf({ rows: [...others, row(innerRow("Python"), 4.51)] })).toContain("floor ✗ |");
  });

  test("with the calls that it replaces", () => {
    const others = [row(floorRow, 1), row(byAgentRow, 100)];
    const rows = [...others, row(byToolRow, 75)];
    expect(textOf({ rows })).toContain(`| ${byAgentRow} | 75.0 | ≤ 0.75 × that ✓ |`);
    expect(textOf({ rows: [...others, row(byToolRow, 76)] })).toContain("× that ✗ |");
  });
});

test("a flood is judged by event loop and memory", () => {
  const loop = { medianMs: 1, p90Ms: 1, p99Ms: 10.1, maxMs: 30 };
  const flood = { kind: "lookups with small answers", requests: 300_000, programs: 4 } as const;
  const floods = [{ ...flood, takenBytes: 2 ** 20, loop, growthBytes: 2 ** 25 }];
  expect(textOf({ floods })).toContain("| 300000 | 1024 | 10.1 | ≤ 10 ✗ | +32 | < 32 ✗ |");
});

test("programs are judged by those that ended, and by those at work at once", () => {
  expect(textOf({})).toContain("| 100 | 10 | 100 | all ✓ | 4 | 4 | ≤ slots ✓ | 12.3 |");
  const programs = { ...report.programs, ended: 99, mostAtOnce: 5 };
  expect(textOf({ programs })).toContain("| 99 | all ✗ | 4 | 5 | ≤ slots ✗ |");
});

describe("at one moment", () => {
  test.each([
    ["nothing is done where nothing is", [], 0],
    [
      "one thing is done before another",
      [
        [1, 2],
        [2, 3],
      ],
      1,
    ],
    [
      "as much is done as there are spans with that moment",
      [
        [1, 5],
        [4, 6],
        [2, 3],
        [5, 7],
      ],
      2,
    ],
    [
      "a span within others counts",
      [
        [1, 9],
        [2, 8],
        [3, 4],
      ],
      3,
    ],
  ] as const)("%s", (_, spans, most) => {
    expect(mostAtOnce(spans)).toBe(most);
  });
});

test("each tool has a module, and those that are called may be", () => {
  const options = { path: "manifest.yaml", profileNames: ["standard"] };
  const { tools } = parseManifest(Buffer.from(manifestOf([], gatewayEntries)), options).manifest;
  expect(lightTool).toBe(nameOf(lightPython));
  for (const name of Object.keys(gatewayEntries)) {
    const { runtime, module, gateway } = tools.get(name)!;
    const file = runtime === "python" ? `python/${module}.py` : `node/${module}`;
    if (module !== "") expect(existsSync(join(toolsDir, file)), file).toBe(true);
    for (const called of gateway?.tools ?? [])
      expect(tools.get(called)!.catalog.allowedCallers.has("programmatic")).toBe(true);
  }
});
