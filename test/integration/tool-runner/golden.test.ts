/**
 * Tools of the original worker, run unmodified, answer as recorded from it.
 *
 * The recording holds whole invocations and responses; compared is what the tool side decides, the tool's result or
 * that there is an error. The original answers every failure of a tool as TOOL_ERROR with a traceback; the codes of the
 * design document, appendix D, tell them apart.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { fixtures, removeWorkDirs, type RunOptions, runTool } from "./run-tool.ts";

afterAll(removeWorkDirs);

const golden = join(import.meta.dirname, "../../fixtures/golden");

interface RecordedLine {
  readonly version: "seed" | "lastpy";
  readonly case: string;
  readonly payload: {
    readonly id?: string;
    readonly params?: { tool_name: string; args: object; tool_config: object };
    readonly result?: { tool_result: object; timed_out: boolean };
    readonly error?: { message: string };
  };
}

interface RecordedCall {
  readonly what: string;
  readonly tool: string;
  readonly args: object;
  readonly toolConfig: object;
  readonly toolResult: object | undefined;
  readonly errorMessage: string | undefined;
}

const recorded = readRecording();

/** Pairs each recorded request with its response. */
function readRecording(): readonly RecordedCall[] {
  const lines = readFileSync(join(golden, "str-golden.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line.replaceAll(/\bNaN\b/g, "null")) as RecordedLine);
  return lines.flatMap((request) => {
    const { id, params } = request.payload;
    if (params === undefined || id === undefined) return [];
    const response = lines.find(
      (line) => line.payload.id === id && line.payload.params === undefined,
    );
    const { result, error } = response!.payload;
    if (result?.timed_out === true) return [];
    return {
      what: `${request.version}: ${request.case}`,
      tool: params.tool_name,
      args: params.args,
      toolConfig: params.tool_config,
      toolResult: result?.tool_result,
      errorMessage: error?.message,
    };
  });
}

const source = readFileSync(join(golden, "simple_tools.py"), "utf8");

/** Calls of tools whose source is here. */
const calls = recorded.filter(({ tool }) => source.includes(`def ${tool}(`));

function run(call: Pick<RecordedCall, "tool" | "args" | "toolConfig">, options: RunOptions = {}) {
  return runTool("simple_tools", call.tool, {
    args: call.args,
    toolConfig: call.toolConfig,
    toolsDir: golden,
    ...options,
  });
}

describe("what succeeded there succeeds here with the same result", () => {
  const succeeded = calls.filter(
    // What `slow` returns depends on how busy the machine is.
    ({ tool, toolResult }) => toolResult !== undefined && tool !== "slow",
  );

  test.for(succeeded.map((call) => [call.what, call] as const))("%s", async ([, call]) => {
    expect((await run(call)).document).toEqual({ result: call.toolResult, outputs: {} });
  });

  test("the recording has twelve of them", () => {
    expect(succeeded).toHaveLength(12);
  });

  test("slow, which tells each tick as it happens", async () => {
    const { document, statusLines } = await run({
      tool: "slow",
      args: { seconds: 0.2, every: 0.05 },
      toolConfig: {},
    });
    const { ticks } = document?.["result"] as { ticks: number };
    expect(ticks).toBeGreaterThan(0);
    expect(statusLines).toEqual(
      Array.from({ length: ticks }, (_, index) => `{"status": "tick ${index + 1}"}`),
    );
  });
});

describe("what failed there for a reason of the tool's fails here, with a code and without a traceback", () => {
  test.for<[tool: string, args: object, error: string]>([
    ["boom", {}, "Tool raised ValueError: invalid input format"],
    [
      "echo_plain",
      { unexpected: 1 },
      'echo_plain() does not take the argument "unexpected"; it takes message',
    ],
  ])("%s(%j)", async ([tool, args, error]) => {
    const there = calls.find(
      (call) => call.tool === tool && JSON.stringify(call.args) === JSON.stringify(args),
    );
    expect(there?.errorMessage).toBeDefined();
    expect((await run({ tool, args, toolConfig: {} })).document).toEqual({
      error,
      error_code: "EXECUTION_ERROR",
    });
  });

  test("mem, within the memory of the standard profile", async () => {
    const prefix = ["/usr/bin/prlimit", `--as=${1024 * 1024 * 1024}`];
    const call = { tool: "mem", args: { mb: 2000 }, toolConfig: {} };
    expect((await run(call, { prefix })).document).toMatchObject({
      error: "Tool raised MemoryError: it needs more memory than its sandbox may use",
    });
  });

  test("exit3, which leaves nothing but its exit status", async () => {
    const call = { tool: "exit3", args: {}, toolConfig: {} };
    expect(await run(call)).toMatchObject({ exitCode: 3, document: undefined });
  });
});

test("a tool that forks a child and returns does not wait for it", async () => {
  // The child holds the runner's output streams open: they go elsewhere here, as nothing ends the child.
  const run = await runTool("simple_tools", "fork_child", {
    args: { seconds: 10 },
    toolsDir: golden,
    prefix: ["/bin/sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh"],
  });
  expect(run.document).toEqual({ result: { parent: "done" }, outputs: {} });
  expect(run.durationMs).toBeLessThan(10_000);
});

test("the design document's example tool runs as it is printed there", async () => {
  const text = "one two\nthree";
  const run = await runTool("design_document_tool", "process_file", {
    args: { input_file: "in.txt" },
    artifacts: { input_file: { filename: "in.txt", content: text } },
  });
  expect(run.document).toEqual({
    result: {
      status: "success",
      statistics: { line_count: 2, word_count: 3, char_count: text.length },
      output_artifact: "summary.txt",
    },
    outputs: {},
  });
  expect(run.statusLines).toEqual([
    '{"status": "Loading input file..."}',
    '{"status": "Analyzing content..."}',
  ]);
  expect(readFileSync(join(run.workDir, "output/summary.txt"), "utf8")).toBe(
    `Lines: 2\nWords: 3\nChars: ${text.length}`,
  );
  expect(readFileSync(join(fixtures, "design_document_tool.py"), "utf8")).toContain("ctx: Any");
});

test("the design document's example tool says when its artifact is missing", async () => {
  const run = await runTool("design_document_tool", "process_file", {
    args: { input_file: "in.txt" },
  });
  expect(run.document).toMatchObject({
    result: { status: "error", error: "Could not load input artifact" },
  });
});
