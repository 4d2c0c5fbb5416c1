/**
 * The tools that are measured. None does anything, so that what is timed is everything around it.
 */
import { fileURLToPath } from "node:url";
import type { StartKind } from "../worker/protocol/execution.ts";

/** Where the modules of the tools are. */
export const toolsDir = fileURLToPath(new URL("tools/", import.meta.url));

/** What a tool's module imports; docs/benchmarks.md says what that is. */
type Weight = "light" | "typical" | "heavy" | "working";

const languages = {
  Python: { runtime: "python", moduleOf: (weight: Weight) => `bench_${weight}` },
  JavaScript: { runtime: "node", moduleOf: (weight: Weight) => `${weight}.js` },
  TypeScript: { runtime: "node", moduleOf: () => "typed.ts" },
} as const;

/** A tool by what it is written in, what it imports, and how its calls come to their sandboxes. */
export interface BenchTool {
  readonly language: keyof typeof languages;
  readonly weight: Weight;
  readonly start: StartKind;
  /** Sandboxes that wait for its calls at most. */
  readonly maxWarm?: number;
  /** What its manifest says of the network: nothing unless given. */
  readonly network?: "none" | "list";
}

/** A list that no tool uses: what is asked is what it costs to have one. */
const listedNetwork = { allow: ["api.example.com"] };

/**
 * Sandboxes of a tool that wait in quiet times: the fewest, so that they do not weigh on the rows
 * of others.
 */
const minWarm = 1;
/** And at most, as where the manifest does not say. */
const maxWarm = 16;

/**
 * Name of the tool that floods the worker with statuses, for as many `seconds` as its argument
 * says.
 */
export const floodTool = "flood";
/** More than it can tell. */
const floodStatusKb = 1_048_576;

/** Name of the tool that waits, for as many `seconds` as its argument says. */
export const sleepTool = "sleep";

/** Name of the tool that reads an artifact, its argument `data`, and saves another. */
export const artifactTool = "artifact";

/** The tool that stands for most in the comparisons. */
export const typicalPython = { language: "Python", weight: "typical", start: "template" } as const;

/** The least that a Python tool can be. */
export const lightPython = { language: "Python", weight: "light", start: "template" } as const;

/** The typical one without anything made before the call, in any language. */
export function typicalCold(language: BenchTool["language"]): BenchTool {
  return { language, weight: "typical", start: "cold" };
}

/** A tool that has one sandbox waiting at most: a second call at once finds none. */
export const scarceTool: BenchTool = { ...typicalPython, maxWarm: 1 };

const weights: readonly Weight[] = ["light", "typical", "heavy"];

/** Every tool but that. */
export const tools: readonly BenchTool[] = [
  ...weights.flatMap((weight): readonly BenchTool[] => [
    { language: "Python", weight, start: "cold" },
    { language: "Python", weight, start: "pool" },
    { language: "Python", weight, start: "template" },
  ]),
  ...weights.flatMap((weight): readonly BenchTool[] => [
    { language: "JavaScript", weight, start: "cold" },
    { language: "JavaScript", weight, start: "pool" },
    { language: "JavaScript", weight, start: "template" },
  ]),
  { language: "TypeScript", weight: "light", start: "cold" },
];

/** Those that are called through brokers. */
export const brokerTools = tools.filter(({ weight }) => weight === "typical");

/** Those of them that sandboxes wait for. */
export const warmTools = brokerTools.filter(({ start }) => start !== "cold");

/** Its name in the manifest. */
export function nameOf({ language, weight, start, maxWarm: max, network }: BenchTool): string {
  const words = [language, weight, start, max, network].filter((word) => word !== undefined);
  return words.join("_").toLowerCase();
}

/**
 * The manifest that serves these tools, the three with names of their own, and others by their
 * entries, as text.
 */
export function manifestOf(
  served: readonly BenchTool[],
  others: Readonly<Record<string, object>> = {},
): string {
  const entries = served.map((tool) => {
    const { runtime, moduleOf } = languages[tool.language];
    const { start } = tool;
    const warm = start === "cold" ? {} : { warm: { min: minWarm, max: tool.maxWarm ?? maxWarm } };
    const network = tool.network === "list" ? listedNetwork : tool.network;
    const facts = { runtime, module: moduleOf(tool.weight), function: "nothing", network };
    return [nameOf(tool), { ...facts, start, ...warm }] as const;
  });
  const flood = {
    module: "bench_flood",
    function: "flood",
    start: "cold",
    limits: { status_kb: floodStatusKb },
  };
  const sleep = {
    module: "bench_sleep",
    function: "sleep",
    start: "template",
    // None waits where no call of it comes.
    warm: { min: 0, max: maxWarm },
  };
  const artifact = {
    ...{ module: "bench_artifact", function: "copy", start: "template" },
    warm: { min: 0, max: maxWarm },
  };
  const named = { [floodTool]: flood, [sleepTool]: sleep, [artifactTool]: artifact, ...others };
  // JSON is YAML.
  return JSON.stringify({ version: 1, tools: { ...Object.fromEntries(entries), ...named } });
}
