/**
 * The result of a program, which a program can write in place of its runner.
 */
import { describe, expect, test } from "vitest";
import { isProgramResult } from "../../../../worker/protocol/tool-calls/program.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const result: JsonObject = { value: null, stdout: "", stderr: "", displays: [] };

describe("what a program comes to", () => {
  test.for<JsonObject>([
    result,
    { ...result, value: { any: [1] }, stdout: "a", stderr: "b", displays: [1, {}, null] },
    { ...result, stdout: "é".repeat(32 * 1024), displays: Array.from({ length: 100 }, () => 1) },
  ])("is value, streams and displays: %#", (each) => {
    expect(isProgramResult(each)).toBe(true);
  });

  test.for<[what: string, value: JsonObject]>([
    ["another member", { ...result, more: 1 }],
    ["another member in place of one", { stdout: "", stderr: "", displays: [], more: 1 }],
    ["a stream that is no text", { ...result, stderr: 1 }],
    ["a stream of too many bytes", { ...result, stdout: "é".repeat(32 * 1024 + 9) }],
    ["displays that are no list", { ...result, displays: {} }],
    ["too many displays", { ...result, displays: Array.from({ length: 101 }, () => 1) }],
  ])("has not %s", ([, each]) => {
    expect(isProgramResult(each)).toBe(false);
  });

  test.for(Object.keys(result))("lacks nothing: %s", (name) => {
    const { [name]: _, ...rest } = result;
    expect(isProgramResult(rest)).toBe(false);
  });
});
