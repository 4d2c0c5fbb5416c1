/**
 * Programs in Python that fail, and how they end.
 */
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, removeWorkDirs } from "../run-tool.ts";
import { nothingElse, runPython, valueOf } from "./program-runs.ts";

forkRunners();
afterAll(removeWorkDirs);

describe("a syntax error runs nothing, and has line and column:", () => {
  type SyntaxCase = [code: string, error: string, line?: number, column?: number];

  test.for<SyntaxCase>([
    ["y = ;", "SyntaxError: invalid syntax", 2, 5],
    ["é = ü ü", "SyntaxError: invalid syntax", 2, 7],
    ["\n  y = 1", "IndentationError: unexpected indent", 3, 2],
    [
      "def f():",
      "IndentationError: expected an indented block after function definition on line 2",
      2,
      9,
    ],
    ["return 1", "SyntaxError: 'return' outside function", 2, 1],
    ["def f(): await 1", "SyntaxError: 'await' outside async function", 2, 10],
    ["(".repeat(300), "SyntaxError: too many nested parentheses", 2, 201],
    ["not ".repeat(60_000), "SyntaxError: the source is too complex to parse"],
    ["'\0'", "SyntaxError: source code string cannot contain null bytes"],
    [
      "'\ud800'",
      "SyntaxError: 'utf-8' codec can't encode character '\\ud800' in position 18: surrogates not allowed",
    ],
  ])("%j", async ([code, error, line, column]) => {
    const run = await runPython(`print("running")\n${code}`);
    expect(run).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    expect(run.document).toEqual({
      error: line === undefined ? error : `${error} (line ${line}, column ${column})`,
      error_code: "EXECUTION_ERROR",
      ...(line !== undefined && { error_data: { line, column } }),
    });
  });
});

test("a byte order mark and a first line for the shell are no part of a program", async () => {
  expect(await valueOf("\ufeff#!/usr/bin/env python3\n1")).toBe(1);
  const { document } = await runPython("\ufeff1 + x");
  expect(document).toMatchObject({ error_data: { stack: ["line 1, column 5: 1 + x"] } });
});

describe("an exception of a program", () => {
  test("has the lines of the program", async () => {
    const code = `import json
def f(x):
  return x + json.loads(x)
def g():
  # Not the first one.
  return "ü", (lambda: f("ü"))()
g()`;
    const run = await runPython(code);
    expect(run.document).toEqual({
      error: "Program raised JSONDecodeError: Expecting value: line 1 column 1 (char 0) (line 3)",
      error_code: "EXECUTION_ERROR",
      error_data: {
        line: 3,
        column: 14,
        stack: [
          "line 3, column 14, in f: return x + json.loads(x)",
          'line 6, column 24, in <lambda>: return "ü", (lambda: f("ü"))()',
          'line 6, column 15, in g: return "ü", (lambda: f("ü"))()',
          "line 7, column 1: g()",
        ],
      },
    });
  });

  test("has no more than 20 lines, the innermost ones", async () => {
    const { document } = await runPython("def f(n):\n  return f(n + 1)\nf(0)");
    expect(document).toMatchObject({
      error: expect.stringMatching(/^Program raised RecursionError: .* \(line 2\)$/),
      error_data: {
        line: 2,
        column: 10,
        stack: Array(20).fill("line 2, column 10, in f: return f(n + 1)"),
      },
    });
  });

  test("is printed with its innermost frames", async () => {
    const code = `import sys
sys.setrecursionlimit(6_000)
def f(n): return g(n + 1)
def g(n): return f(n + 1)
f(0)`;
    const { stderr, document } = await runPython(code);
    expect(document).toMatchObject({ error_data: { stack: { length: 20 } } });
    expect(stderr.match(/File "<program>.py"/g)).toHaveLength(200);
  });

  test("of a task or a cause is told, with the line of the task", async () => {
    const group = await runPython(`import asyncio
async def work():
  raise ValueError("first")
async with asyncio.TaskGroup() as tasks:
  tasks.create_task(work())`);
    expect(group.document).toMatchObject({
      error:
        "Program raised ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception) (cause: ValueError: first) (line 3)",
      error_data: { line: 3, column: 3, stack: { length: 2 } },
    });
    const cause = await runPython(
      "try: {}['a']\nexcept KeyError as e: raise OSError(24, 'files') from e",
    );
    expect(cause.document).toMatchObject({
      error: "Program raised OSError: [Errno 24] files (cause: KeyError: 'a') (line 2)",
      error_limit: "open_files",
    });
  });

  test.for<[code: string, document: object]>([
    [
      "from secure_tool_runtime import ToolError\nraise ToolError('no such row')",
      { error: "no such row", error_code: "TOOL_ERROR" },
    ],
    [
      "import sys\nsys.exit()",
      { error: "Program called sys.exit()", error_code: "EXECUTION_ERROR" },
    ],
    ["exit('text')", { error: "Program called sys.exit('text')", error_code: "EXECUTION_ERROR" }],
  ])("may be meant: %s", async ([code, document]) => {
    expect((await runPython(code)).document).toEqual(document);
  });

  test.for<[code: string, error: string, limit?: string]>([
    ["raise KeyboardInterrupt", "KeyboardInterrupt"],
    ["raise GeneratorExit('a')", "GeneratorExit: a"],
    ["raise MemoryError", "MemoryError: it needs more memory than its sandbox may use", "memory"],
    ["exec('x =')", "SyntaxError: invalid syntax (<string>, line 1)"],
    ["import not_there", "ModuleNotFoundError: No module named 'not_there'"],
  ])("may be any: %s", async ([code, error, limit]) => {
    const { document } = await runPython(code);
    expect(document).toEqual({
      error: `Program raised ${error} (line 1)`,
      error_code: "EXECUTION_ERROR",
      ...(limit !== undefined && { error_limit: limit }),
      error_data: { line: 1, column: 1, stack: [`line 1, column 1: ${code}`] },
    });
  });

  test("of a program that has filled its memory is answered", async () => {
    const code = "data = []\nwhile True: data.append(bytearray(1000))";
    const run = await runPython(code, { prefix: ["/usr/bin/prlimit", "--as=60000000"] });
    expect(run.document).toMatchObject({
      error: expect.stringMatching(/^Program raised MemoryError: it needs more memory/),
      error_limit: "memory",
    });
  });

  test.for([
    "import traceback\ntools.sync.call('secret')",
    "import sys\nawait tools.call('secret')",
    "import sys; sys.__excepthook__ = None\ntools.sync.call('secret')",
  ])("is printed without its source, which may be logged, and the runner's: %j", async (code) => {
    const { stderr } = await runPython(code);
    expect(stderr).toBe(
      `Traceback (most recent call last):
  File "<program>.py", line 2, in <module>
secure_tool_runtime.gateway.results.ToolCallError: The tool's manifest entry has no gateway
`,
    );
  });

  test("that the program prints itself has its source", async () => {
    const code = `import traceback
def f():
  return 1 / 0
try: f()
except ArithmeticError: text = traceback.format_exc()
text`;
    expect(await valueOf(code)).toMatch(
      /line 4, in <module>\n {4}try: f\(\)\n.*\n.*line 3, in f\n {4}return 1 \/ 0\n/,
    );
  });

  test("of a thread is printed, and the program goes on", async () => {
    const code =
      "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()\n4";
    const { document } = await runPython(code);
    expect(document).toMatchObject({
      result: { value: 4, stderr: expect.stringContaining("ZeroDivisionError: division by zero") },
    });
  });
});

describe("the end of a program", () => {
  test.for([
    "import sys\nsys.exit(3)",
    "async def f(): exit(3)\nawait f()",
    "import os\nos._exit(3)",
  ])("by an exit status of its own leaves no answer: %s", async (code) => {
    expect(await runPython(code)).toMatchObject({ exitCode: 3, document: undefined });
  });

  test("in a forked child is no second answer", async () => {
    const code = `import multiprocessing, os
def double(n): return 2 * n
if os.fork() == 0: raise ValueError("child")
os.wait()
with multiprocessing.get_context("fork").Pool(1) as pool: doubled = pool.map(double, [1])
doubled`;
    const { document, exitCode } = await runPython(code);
    expect([exitCode, document]).toEqual([
      0,
      { result: { ...nothingElse, value: [2] }, outputs: {} },
    ]);
  });

  test("waits for its threads", async () => {
    const code = `import threading, time
threading.Thread(target=lambda: (time.sleep(0.1), print("late"))).start()
1`;
    const run = await runPython(code);
    expect(run).toMatchObject({ stdout: "late\n", document: { result: { value: 1, stdout: "" } } });
  });

  test("by SIGTERM is immediate, but for one that awaits, whose task is cancelled", async () => {
    const terminated = "import os, signal\nkill = lambda: os.kill(os.getpid(), signal.SIGTERM)\n";
    const plain = await runPython(`${terminated}kill()`);
    expect(plain).toMatchObject({ signal: "SIGTERM", document: undefined });
    const code = `${terminated}import asyncio
asyncio.get_running_loop().call_later(0.01, kill)
try: await asyncio.sleep(60)
except asyncio.CancelledError: __out = "cancelled"`;
    expect(await valueOf(code)).toBe("cancelled");
  });
});

test("the source of a program is in no file", async () => {
  const code = `import os
[name for directory, _, names in os.walk(".") for name in names
 if name != "status.pipe" and "in no file" in open(os.path.join(directory, name)).read()]`;
  expect(await valueOf(code)).toEqual([]);
});

test("a program that is only loaded does not run", async () => {
  for (const members of [{ load_only: true }, { describe: true }]) {
    const run = await runPython("print('running')", { members });
    expect(run).toMatchObject({ stdout: "", document: { result: {}, outputs: {} } });
  }
});

test.for<[members: object, problem: string]>([
  [{ program: { language: "ruby" } }, '"program.language" must be python'],
  [{ args: { code: 1 } }, '"args.code" must be a string'],
  [{ args: { code: "1", inputs: [1] } }, '"args.inputs" must be an object'],
  [{ result_file: undefined }, '"result_file" is missing'],
])("arguments that describe no program are refused: %j", async ([members, problem]) => {
  const run = await runPython("1", { members: members as Record<string, unknown> });
  expect(run).toMatchObject({ exitCode: 1, document: undefined });
  expect(run.stderr).toContain(problem);
});
