/**
 * Tools of every generation of the original, in one worker: called as they are written, with what
 * they give in the answer.
 */
import { text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ToolCall } from "../../../harness/messages.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";

describe("tools of every generation", () => {
  let rig: Rig;
  const signal = new AbortController().signal;

  beforeAll(async () => {
    const functions = ["context_first", "arguments_only", "portable", "separate_package"];
    const entries = functions.map((name) => [name, { module: "conventions", function: name }]);
    rig = await startRig({
      tools: {
        ...Object.fromEntries(entries),
        class_tool: { module: "conventions", class_name: "ClassTool" },
        no_class: { module: "conventions", class_name: "NoSuchClass" },
        plain_values: { module: "plain_values", function: "values" },
      },
      files: {
        "plain_values.py": [
          "import dataclasses, datetime",
          "@dataclasses.dataclass",
          "class Reading:",
          "    at: datetime.date",
          "    values: list",
          "def values(which):",
          "    if which == 'members': return Reading(datetime.date(2026, 11, 20), [float('nan'), b'x'])",
          "    if which == 'generator': return (each for each in 'abc')",
        ].join("\n"),
      },
    });
    for (const [filename, content] of Object.entries({ "q3.csv": "a,b", "one.txt": "1" })) {
      const bytes = Buffer.from(content);
      const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
      await rig.store.save(rig.scope, filename, source, { mimeType: "text/csv" }, signal);
    }
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function call(tool: string, args: ToolCall["args"], more: Partial<ToolCall> = {}) {
    const statuses: string[] = [];
    const base = { userId: rig.scope.userId, sessionId: rig.scope.sessionId, timeoutSeconds: 30 };
    const result = await rig.agent.call(
      { tool, ...(args === undefined ? {} : { args }), ...base, ...more },
      { onStatus: (status) => statuses.push(status) },
    );
    return { result, statuses };
  }

  const reference = (filename: string) => ({ filename, version: undefined });

  test("that take the context first, whatever its name", async () => {
    const { result, statuses } = await call("context_first", { message: "hi" });
    expect(result).toMatchObject({
      kind: "success",
      toolResult: { message: "hi", caller: ["user-42", "web-1", "harness"] },
      createdArtifacts: [{ filename: "first.csv", mimeType: "text/csv" }],
    });
    expect(statuses).toEqual(["context first"]);
  });

  test("that take nothing but arguments and their configuration", async () => {
    const { result } = await call("arguments_only", {}, { toolConfig: { key: "k" } });
    expect(result).toMatchObject({ toolResult: { message: "Hello", tool_config: { key: "k" } } });
  });

  test("that say by annotations what they want and return files with type and description", async () => {
    const { result, statuses } = await call(
      "portable",
      { report: "q3.csv", files: ["one.txt", "q3.csv"] },
      {
        references: new Map([
          ["report", reference("q3.csv")],
          ["files[0]", reference("one.txt")],
          ["files[1]", reference("q3.csv")],
        ]),
      },
    );
    expect(result).toMatchObject({
      kind: "success",
      toolResult: {
        status: "success",
        message: "q3.csv 0 text/csv",
        data: { same: true, files: ["1", "a,b"], tool_context: null },
        data_objects: [
          { name: "long.txt", content: "many x", disposition: "inline" },
          { name: "note.txt", content: "stays", disposition: "inline" },
        ],
        error_code: null,
      },
    });
    expect(result.kind === "success" && result.createdArtifacts).toEqual([
      {
        filename: "chart.bin",
        version: 0,
        mimeType: "application/x-chart",
        sizeBytes: 2,
        description: "A chart",
      },
      { filename: "long.txt", version: 0, mimeType: "text/plain", sizeBytes: 2_000 },
      { filename: "table.csv", version: 0, mimeType: "text/csv", sizeBytes: 3 },
    ]);
    const stored = await rig.store.open(rig.scope, reference("long.txt"), signal);
    expect(await text(stored.body)).toBe("x".repeat(2_000));
    expect(statuses).toEqual(["portable"]);
  });

  test("whose artifact is named in the arguments and never referenced are told so", async () => {
    const { result } = await call("portable", { report: "q3.csv" });
    expect(result).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      message: 'portable() takes an artifact as "report", and the call brings none as "report"',
    });
  });

  test("that are written for the separate package", async () => {
    const { result } = await call("separate_package", { city: "Oslo" });
    expect(result).toMatchObject({
      kind: "success",
      toolResult: { status: "error", message: "no Oslo for True", error_code: "NO_CITY" },
    });
  });

  test("that are classes", async () => {
    const { result, statuses } = await call(
      "class_tool",
      { report: "q3.csv" },
      { toolConfig: { key: "k" }, references: new Map([["report", reference("q3.csv")]]) },
    );
    expect(result).toMatchObject({ kind: "success", toolResult: { text: "a,b", key: "k" } });
    expect(statuses).toEqual(["class"]);
  });

  test("of a class that is not there", async () => {
    expect((await call("no_class", {})).result).toMatchObject({
      kind: "error",
      code: "TOOL_NOT_FOUND",
      message: 'Module "conventions" has no class "NoSuchClass"',
    });
  });

  test("that return an object with members, or what has its values still to give", async () => {
    expect((await call("plain_values", { which: "members" })).result).toMatchObject({
      kind: "success",
      toolResult: { at: "2026-11-20", values: [null, "b'x'"] },
    });
    expect((await call("plain_values", { which: "generator" })).result).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      message: "The tool returned a generator, whose values are still to come; make a list of them",
    });
  });
});
