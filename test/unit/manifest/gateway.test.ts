/**
 * The fields of tools that call others, and of those that may be called.
 */
import { expect, test } from "vitest";
import { defaultGatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import { parse } from "./fixtures.ts";

/** The one tool of a manifest with these fields. */
function entryOf(fields: string) {
  const { manifest } = parse(`version: 1\ntools:\n  t: {module: m, function: f, ${fields}}\n`);
  return manifest.tools.get("t");
}

test("a tool calls none and is called by agents unless its entry says so", () => {
  const entry = entryOf("timeout_seconds: 5");
  expect(entry?.gateway).toBeUndefined();
  expect(entry?.catalog).toEqual({
    allowedCallers: new Set(["direct"]),
    namespace: undefined,
    tags: [],
    examples: [],
  });
});

test("a gateway names tools, and bounds in place of the defaults, also above them", () => {
  const entry = entryOf('gateway: {tools: ["sales:*", csv], max_tool_calls: 60, max_depth: 1}');
  expect(entry?.gateway).toEqual({
    tools: ["sales:*", "csv"],
    remote: [],
    limits: { ...defaultGatewayLimits, maxToolCalls: 60, maxDepth: 1 },
    isIdempotent: false,
  });
});

test("a gateway names every bound of its tool", () => {
  const named = { max_tool_calls: 1, max_chain_steps: 2, max_concurrent_calls: 3, max_depth: 4 };
  const others = { max_lookups: 5, max_operations_per_second: 6, max_artifact_bytes: 7 };
  const bounds = JSON.stringify({ tools: ["csv"], ...named, ...others });
  expect(entryOf(`gateway: ${bounds}`)?.gateway?.limits).toEqual({
    ...{ maxToolCalls: 1, maxChainSteps: 2, maxConcurrentCalls: 3, maxDepth: 4 },
    ...{ maxLookups: 5, maxOperationsPerSecond: 6, maxArtifactBytes: 7 },
  });
});

test("a gateway names tools of other workers, alone or beside those of the manifest", () => {
  expect(entryOf("gateway: {remote: [weather]}")?.gateway).toMatchObject({
    tools: [],
    remote: ["weather"],
  });
  expect(entryOf("gateway: {tools: [t], remote: [weather.eu]}")?.gateway).toMatchObject({
    tools: ["t"],
    remote: ["weather.eu"],
  });
});

test("a tool of the manifest is none of other workers, served here or not", () => {
  const entries = (other: string): string =>
    `version: 1\ntools:\n  t: {module: m, function: f, gateway: {remote: [other]}}\n  ${other}\n`;
  const problem = '3:50: tool "t": gateway.remote[0]: "other" is a tool of this manifest';
  expect(() => parse(entries("other: {module: m, function: f}"))).toThrow(problem);
  const elsewhere = entries("other: {module: m, function: f, queue: slow}");
  expect(() => parse(elsewhere, { queues: ["default"] })).toThrow(problem);
});

test("a tool has a namespace, tags, callers and examples", () => {
  const example = "{description: One, args: {x: 1}, result_hint: a row}";
  const fields = `namespace: sales, tags: [csv, csv], allowed_callers: [direct, programmatic], examples: [${example}]`;
  expect(entryOf(fields)?.catalog).toEqual({
    allowedCallers: new Set(["direct", "programmatic"]),
    namespace: "sales",
    tags: ["csv"],
    examples: [{ description: "One", args: { x: 1 }, resultHint: "a row" }],
  });
});

test.each([
  ["gateway: {}", "gateway:"],
  ["gateway: {remote: []}", "gateway.remote"],
  ['gateway: {remote: ["a:b"]}', "gateway.remote[0]"],
  ['gateway: {remote: ["*"]}', "gateway.remote[0]"],
  ['gateway: {remote: ["sales:*"]}', "gateway.remote[0]"],
  ['gateway: {remote: ["t"]}', "gateway.remote[0]"],
  [
    `gateway: {remote: [${Array.from({ length: 101 }, (_, n) => `w${n}`).join()}]}`,
    "gateway.remote",
  ],
  ["gateway: {tools: []}", "gateway.tools"],
  ['gateway: {tools: ["a b"]}', "gateway.tools[0]"],
  ['gateway: {tools: ["*:x"]}', "gateway.tools[0]"],
  ['gateway: {tools: ["*"]}', "gateway.tools[0]"],
  ['gateway: {tools: ["a"], max_depth: 6}', "gateway.max_depth"],
  ['gateway: {tools: ["a"], max_tool_calls: 0}', "gateway.max_tool_calls"],
  ['gateway: {tools: ["a"], tool: 1}', "gateway.tool"],
  ["allowed_callers: []", "allowed_callers"],
  ["allowed_callers: [everyone]", "allowed_callers[0]"],
  ['namespace: "a:b"', "namespace"],
  ["tags: [a b]", "tags[0]"],
  ["examples: [{args: {}}]", "examples[0].description"],
])("%s is a problem at %s", (fields, place) => {
  expect(() => entryOf(fields)).toThrow(`tool "t": ${place}`);
});

/** Whether each tool of a manifest may run twice. */
function idempotenceOf(tools: Readonly<Record<string, string>>) {
  const lines = Object.entries(tools).map(
    ([name, fields]) => `  ${name}: {module: m, function: f, ${fields}}`,
  );
  const { manifest } = parse(`version: 1\ntools:\n${lines.join("\n")}\n`);
  return Object.fromEntries([...manifest.tools].map(([name, tool]) => [name, tool.idempotent]));
}

test("a tool that may call one which must not run twice is like that, unless it says otherwise", () => {
  const programmatic = "allowed_callers: [programmatic]";
  const calls = (...names: string[]): string => `gateway: {tools: [${names.join(", ")}]}`;
  expect(
    idempotenceOf({
      pays: `idempotent: false, ${programmatic}`,
      pays_by_agents_only: "idempotent: false",
      reads: programmatic,
      calls_it: `${calls("pays")}, ${programmatic}`,
      calls_its_caller: calls("calls_it"),
      says_otherwise: `${calls("pays")}, idempotent: true`,
      calls_others: calls("reads", "pays_by_agents_only"),
      calls_other_workers: "gateway: {remote: [weather]}",
      trusts_other_workers: "gateway: {remote: [weather]}, idempotent: true",
    }),
  ).toEqual({
    pays: false,
    pays_by_agents_only: false,
    reads: true,
    calls_it: false,
    calls_its_caller: false,
    says_otherwise: true,
    calls_others: true,
    calls_other_workers: false,
    trusts_other_workers: true,
  });
});
