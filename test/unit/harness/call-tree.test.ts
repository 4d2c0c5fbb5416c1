/**
 * The tree of a program's calls.
 */
import { describe, expect, test } from "vitest";
import { CallTree } from "../../../harness/tool/programs/call-tree.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

/** A tree, and what the log says at a time. */
function newTree() {
  let nowMs = 0;
  const tree = new CallTree(
    (name) => `shop:${name}`,
    () => nowMs,
  );
  const hear = (atMs: number, event: string, members: JsonObject): void => {
    nowMs = atMs;
    tree.hear({ event, members, level: "info", message: "", time: "" });
  };
  return {
    tree,
    received: (atMs: number, id: string, parentId: string, tool = id) =>
      hear(atMs, "tool_call.received", { id, tool, parentId }),
    ended: (atMs: number, id: string, durationMs: number, outcome = "ok") =>
      hear(atMs, "tool_call.ended", { id, durationMs, outcome }),
  };
}

function reported(id: string, start_ms: number, duration_ms: number, outcome = "ok") {
  return { id, tool: `shop:${id}`, start_ms, duration_ms, outcome };
}

describe("a tree of calls", () => {
  test("has calls in calls below theirs, by their starts, and refused ones", () => {
    const { tree, received, ended } = newTree();
    received(1_010, "outer", "program");
    received(1_030, "inner", "outer");
    received(1_040, "deep", "inner");
    ended(1_060, "deep", 20, "TOOL_ERROR");
    ended(1_080, "inner", 50);
    received(1_090, "again", "outer", "inner");
    ended(1_095, "again", 5);
    ended(1_100, "outer", 90);
    const tool_calls = [reported("refused", 120, 0, "NOT_ALLOWED"), reported("outer", 10, 90)];
    const lines = tree.lines({ result: { execution: { tool_calls, tool_calls_omitted: 3 } } });
    expect(lines).toEqual([
      "  at ms  took ms  outcome        tool",
      "     10       90  ok             shop:outer",
      "     30       50  ok               shop:inner",
      "     40       20  TOOL_ERROR         shop:deep",
      "     90        5  ok               shop:inner",
      "    120        0  NOT_ALLOWED    shop:refused",
      "3 more",
    ]);
  });

  test("is that of a failed program, too, with calls that never ended", () => {
    const { tree, received } = newTree();
    received(5, "outer", "program");
    received(7, "inner", "outer");
    const tool_calls = [reported("outer", 5, 10, "GATEWAY_CLOSED")];
    expect(tree.lines({ error: { data: { execution: { tool_calls } } } }).slice(1)).toEqual([
      "      5       10  GATEWAY_CLOSED shop:outer",
      "      7        0  not ended        shop:inner",
    ]);
  });

  test("is empty for a program without calls", () => {
    const { tree } = newTree();
    expect(tree.lines({ result: { execution: { tool_calls: [] } } })).toEqual([]);
    expect(tree.lines({ result: { execution: {} } })).toEqual([]);
    expect(tree.lines(undefined)).toEqual([]);
  });
});
