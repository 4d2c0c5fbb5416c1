/**
 * The example tools do what their manifest says.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  forkRunners,
  type RunOptions,
  type ToolRun,
  removeWorkDirs,
  runTool,
  statuses,
} from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

const examples = join(import.meta.dirname, "../../../examples/tools");

function run(tool: string, args: object, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("example_tools", tool, { args, toolsDir: join(examples, "python"), ...options });
}

test("every Python tool of the manifest can be called", async () => {
  const manifest = parse(readFileSync(join(examples, "manifest.yaml"), "utf8")) as {
    tools: Record<string, { runtime: string; module: string; function: string }>;
  };
  const tools = Object.entries(manifest.tools).filter(([, { runtime }]) => runtime === "python");
  expect(tools.map(([name]) => name)).toEqual([
    "echo_tool",
    "process_file",
    "execute_python",
    "convert_temperature",
    "count_slowly",
  ]);
  for (const [, tool] of tools) {
    const { document } = await runTool(tool.module, tool.function, {
      args: { no_such_argument: 1 },
      toolsDir: join(examples, "python"),
    });
    expect(document?.["error"]).toContain('does not take the argument "no_such_argument"');
  }
});

test("echo_tool echoes", async () => {
  const echoed = await run("echo_tool", { message: "hi" });
  expect(echoed.document).toEqual({
    result: { status: "success", echoed_message: "hi" },
    outputs: {},
  });
  expect(statuses(echoed)).toEqual(["Echoing message..."]);
});

test("process_file counts and saves a summary", async () => {
  const processed = await run(
    "process_file",
    { input_file: "in.txt" },
    { artifacts: { input_file: { filename: "in.txt", content: "a b\nc" } } },
  );
  expect(processed.document).toEqual({
    result: {
      status: "success",
      statistics: { line_count: 2, word_count: 3, char_count: 5 },
      output_artifact: "summary.txt",
    },
    outputs: { "summary.txt": { description: "Size of in.txt" } },
  });
  expect(readFileSync(join(processed.workDir, "output/summary.txt"), "utf8")).toBe(
    "Lines: 2\nWords: 3\nChars: 5",
  );
});

describe("execute_python", () => {
  test.for<[code: string, answer: object]>([
    ["print(1+1)", { stdout: "2\n" }],
    ["x = 20\nprint('so')\nx + 1", { stdout: "so\n", result: "21" }],
    ["def f(n): return n and f(n - 1)\nf(5)", { stdout: "", result: "0" }],
    ["if __name__ == '__main__':\n    print('main')", { stdout: "main\n" }],
    ["", { stdout: "" }],
  ])("of %j", async ([code, answer]) => {
    expect((await run("execute_python", { code })).document).toEqual({
      result: { status: "success", ...answer },
      outputs: {},
    });
  });

  test.for<[code: string, error: string]>([
    ["x = 1\nfoo()", "NameError: name 'foo' is not defined (line 2)"],
    ["def f():\n    return 1 / 0\n\nf()", "ZeroDivisionError: division by zero (line 2)"],
    ["x = 1\nif:", "SyntaxError: invalid syntax (line 2)"],
  ])("of %j says what is wrong with the code and where", async ([code, error]) => {
    expect((await run("execute_python", { code })).document).toEqual({
      error,
      error_code: "TOOL_ERROR",
    });
  });
});

describe("convert_temperature", () => {
  test("converts", async () => {
    const args = { value: 20, source: "celsius", target: "fahrenheit" };
    expect((await run("convert_temperature", args)).document).toMatchObject({
      result: { value: 68, unit: "fahrenheit" },
    });
  });

  test.for<[args: object, error: string]>([
    [
      { value: 20, source: "celsius", target: "rankine" },
      'Unknown unit "rankine"; known are celsius, fahrenheit, kelvin',
    ],
    [{ value: -1, source: "kelvin", target: "celsius" }, "-1 kelvin is below absolute zero"],
  ])("refuses %j with a ToolError", async ([args, error]) => {
    expect((await run("convert_temperature", args)).document).toEqual({
      error,
      error_code: "TOOL_ERROR",
    });
  });
});

test("count_slowly tells each step", async () => {
  const counted = await run("count_slowly", { to: 3, pause_seconds: 0.01 });
  expect(counted.document).toMatchObject({ result: { counted_to: 3 } });
  expect(statuses(counted)).toEqual([
    "Counted to 1 of 3",
    "Counted to 2 of 3",
    "Counted to 3 of 3",
  ]);
});
