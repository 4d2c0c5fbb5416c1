/**
 * The tools that a benchmark measures.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  artifactTool,
  brokerTools,
  floodTool,
  sleepTool,
  manifestOf,
  nameOf,
  scarceTool,
  tools,
  toolsDir,
  warmTools,
} from "../../../bench/tools.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";

const all = [...tools, scarceTool];
const { manifest } = parseManifest(Buffer.from(manifestOf(all)), {
  path: "manifest.yaml",
  profileNames: ["standard"],
});

test("each starts as its row says, and as many wait as are to", () => {
  for (const tool of all) {
    const entry = manifest.tools.get(nameOf(tool))!;
    expect(entry.start).toBe(tool.start);
    if (tool.start !== "cold") expect(entry.warm.min).toBe(1);
  }
  expect(manifest.tools.get(nameOf(scarceTool))!.warm.max).toBe(1);
  const others = [floodTool, sleepTool, artifactTool];
  expect(manifest.tools.size).toBe(all.length + others.length);
  for (const name of others) expect(manifest.tools.has(name)).toBe(true);
});

test("each has a module", () => {
  for (const { runtime, module } of manifest.tools.values()) {
    const file = runtime === "python" ? `python/${module}.py` : `node/${module}`;
    expect(existsSync(join(toolsDir, file)), file).toBe(true);
  }
});

test("Python and JavaScript tools start in each way", () => {
  const startModesOf = (language: string) =>
    brokerTools.filter((tool) => tool.language === language).map(({ start }) => start);
  expect(startModesOf("Python")).toEqual(["cold", "pool", "template"]);
  expect(startModesOf("JavaScript")).toEqual(["cold", "pool", "template"]);
  expect(warmTools).toHaveLength(4);
});

test("the flood is not ended by its volume", () => {
  const { statusBytes } = manifest.tools.get(floodTool)!.limits;
  expect(statusBytes).toBeGreaterThanOrEqual(2 ** 30);
});
