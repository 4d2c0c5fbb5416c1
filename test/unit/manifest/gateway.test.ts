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
    limits: { ...defaultGatewayLimits, maxToolCalls: 60, maxDepth: 1 },
  });
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
  ["gateway: {}", "gateway.tools"],
  ["gateway: {tools: []}", "gateway.tools"],
  ['gateway: {tools: ["a b"]}', "gateway.tools[0]"],
  ['gateway: {tools: ["*:x"]}', "gateway.tools[0]"],
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
