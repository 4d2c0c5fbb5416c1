/**
 * The value of a program in Python, what it writes and what it displays.
 */
import { afterAll, describe, expect, test } from "vitest";
import { type JsonObject, parseJson } from "../../../../worker/support/json/json.ts";
import { forkRunners, removeWorkDirs } from "../run-tool.ts";
import { nothingElse, runPython, valueOf } from "./program-runs.ts";

forkRunners();
afterAll(removeWorkDirs);

const asyncSeven = "async def f():\n  return 7\n";

describe("the value of a program is", () => {
  type ValueCase = [what: string, code: string, value: unknown];

  test.for<ValueCase>([
    ["its last expression", "n = inputs['n']\n({'double': n * 2})", { double: 6 }],
    ["a text that is all of it", "'text'", "text"],
    ["__out before it", "__out = [1, 2]\n3", [1, 2]],
    ["None as __out", "__out = None; 3", null],
    ["__out that a function sets", "def f():\n  global __out\n  __out = 1\nf()", 1],
    ["what its awaitable last expression comes to", `${asyncSeven}f()`, 7],
    ["what an awaitable __out comes to", `${asyncSeven}__out = f()`, 7],
    [
      "what an awaitable __out comes to that is the last expression",
      `${asyncSeven}__out = f()\n__out`,
      7,
    ],
    [
      "__out that the awaitable last expression sets",
      "async def f():\n  global __out\n  __out = 5\nf()",
      5,
    ],
    [
      "that of top-level awaits",
      `${asyncSeven}[await f(), [await each() for each in [f]]]`,
      [7, [7]],
    ],
    ["null without an expression", "a = 1", null],
    ["null for nothing", "", null],
    ["null for what is not JSON", "lambda: 1", null],
    ["null for what is nested too deeply", "x = []\nfor _ in range(97): x = [x]\nx", null],
    ["null for a number that is too long", "10 ** 5000", null],
    [
      "JSON of what JSON lacks",
      `from __future__ import annotations
from dataclasses import dataclass
from datetime import date
@dataclass
class Row:
    n: int
[(1, {2}), Row(3), date(2026, 1, 2), float("nan"), {4: True, None: "\\ud800"}]`,
      [[1, [2]], { n: 3 }, "2026-01-02", null, { 4: true, null: "\ud800" }],
    ],
    [
      "of what it assigns to the globals",
      "tools, inputs, display = 1, 2, 3\ntools + inputs + display",
      6,
    ],
    [
      "of a program that takes names of the language",
      "print = str = open = list = 1\nlist + str",
      2,
    ],
    ["of a script's main part", "if __name__ == '__main__': __out = 'main'", "main"],
  ])("%s", async ([, code, value]) => {
    expect(await valueOf(code, { inputs: { n: 3 } })).toEqual(value);
  });

  test.for([
    ["b'a'", "it holds bytes; save them as an artifact"],
    ["[print]", "it holds a value of class builtin_function_or_method"],
    [
      "{'a': (n for n in [1])}",
      "it holds a generator, whose values are still to come; make a list of them",
    ],
    ["{(1, 2): 3}", "keys must be str, int, float, bool or None, not tuple"],
    ["[]\n__out.append(__out)", "Circular reference detected"],
    ["[]\nfor _ in range(97): __out = [__out]", "it is nested more than 97 levels deep"],
    ["[]\nfor _ in range(5000): __out = [__out]", "it is nested more than 97 levels deep"],
  ])("not %s", async ([code, reason]) => {
    const { document } = await runPython(`__out = ${code}`);
    expect(document).toEqual({
      error: `__out is not JSON: ${reason}`,
      error_code: "EXECUTION_ERROR",
    });
  });
});

test("the deepest value that a program may have is one that the worker reads", async () => {
  const run = await runPython("x = []\nfor _ in range(96): x = [x]\ndisplay(x); x");
  const { result } = parseJson(Buffer.from(run.resultText!)) as { result: JsonObject };
  expect(result["value"]).not.toBeNull();
  expect(result["displays"]).toEqual([result["value"]]);
});

describe("what a program writes", () => {
  test("comes with its value, and goes on", async () => {
    const code = `
import os, subprocess, sys
print("to", "stdout"); print("to stderr", file=sys.stderr)
sys.stdout.buffer.write(b"bytes\\xff\\n"); sys.__stdout__.write("ü\\n"); sys.stdout.write("rest")
sys.stdout.flush()
subprocess.run(["echo", "child"]); os.write(1, b"descriptor\\n")
display({"a": [1]}); display("text")
[sys.stdout.fileno(), sys.stdout.name, sys.stderr.mode, sys.stdout.isatty()]`;
    const run = await runPython(code);
    expect(run.stdout).toBe("to stdout\nbytes\ufffd\nü\nrestchild\ndescriptor\n");
    expect(run.stderr).toBe("to stderr\n");
    expect(run.document!["result"]).toEqual({
      value: [1, "<stdout>", "w", false],
      stdout: "to stdout\nbytes\ufffd\nü\nrest",
      stderr: "to stderr\n",
      displays: [{ a: [1] }, "text"],
    });
  });

  test("is cut after 64 KiB, between characters", async () => {
    const code = "import sys\nfor _ in range(100): print('ü' * 1000)\nprint('x', file=sys.stderr)";
    const run = await runPython(code);
    const { stdout, stderr } = run.document!["result"] as { stdout: string; stderr: string };
    expect(run.stdout).toHaveLength(100 * 1001);
    expect(stderr).toBe("x\n");
    expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(64 * 1024);
    expect(Buffer.byteLength(stdout)).toBeGreaterThan(64 * 1024 - 4);
    expect(stdout).toMatch(/ü…$/);
  });

  test("elsewhere is not kept, and forges no value", async () => {
    const code = `
import contextlib, io, sys
with contextlib.redirect_stdout(io.StringIO()) as text: print("elsewhere")
print('{"result": {"value": "forged"}}')
sys.stdout = sys.stderr = None
print("nowhere")
text.getvalue()`;
    const { document, exitCode } = await runPython(code);
    expect([exitCode, document!["result"]]).toEqual([
      0,
      { ...nothingElse, value: "elsewhere\n", stdout: '{"result": {"value": "forged"}}\n' },
    ]);
  });

  test("may be closed or taken away", async () => {
    const run = await runPython("import sys\nprint('a'); sys.stdout.close(); del sys.stderr\n1");
    expect(run).toMatchObject({ exitCode: 0, document: { result: { value: 1, stdout: "a\n" } } });
  });

  test("is displayed up to a bound, as a copy", async () => {
    const code = `
def refusal(value):
    try: display(value)
    except Exception as error: return repr(error)
kept = ["x" * 200_000]
display(kept); kept.append(1)
told = [refusal("x" * 100_000), refusal(print), refusal(1)]
display.__name__, told`;
    const run = await runPython(code);
    const bounds = "A program displays at most 100 values of 262144 bytes in all";
    const notJson = "The value is not JSON: it holds a value of class builtin_function_or_method";
    expect(run.document).toMatchObject({
      result: {
        value: ["display", [`ValueError('${bounds}')`, `TypeError('${notJson}')`, null]],
        displays: [["x".repeat(200_000)], 1],
      },
    });
    const many = await runPython("for i in range(101): display(i)");
    expect(many.document).toMatchObject({
      error: `Program raised ValueError: ${bounds} (line 1)`,
      error_data: {
        line: 1,
        column: 22,
        stack: ["line 1, column 22: for i in range(101): display(i)"],
      },
    });
    expect(many.stderr).not.toContain("tool_runner");
  });
});
