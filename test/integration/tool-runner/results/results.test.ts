/**
 * What becomes of the values that tools return.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, removeWorkDirs, requiresResultFile, runTool } from "../run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

async function answer(name: string, args: object = {}): Promise<unknown> {
  const run = await runTool("result_tools", name, { args });
  expect(run.exitCode).toBe(0);
  return run.document;
}

function text(value: string | null): object {
  return { result: { text: value, data_objects: [] }, outputs: {} };
}

describe("what is not a dict becomes its text", () => {
  test.for<[name: string, text: string | null]>([
    ["nothing", null],
    ["text", "plain"],
    ["boolean", "True"],
    ["raw_bytes", "b'abc'"],
    ["tuples", "(1, 2)"],
    ["model_of_a_list", "[1, 2]"],
    ["number", "<5>"],
  ])("%s", async ([name, expected]) => {
    expect(await answer(name)).toEqual(text(expected));
  });
});

describe("an object with members becomes a dict of them", () => {
  const weather = { city: "Oslo", at: "2026-11-20", readings: [[1, 2], { a: 1 }] };
  const model = { weather, number: 5, nan: null };

  test.for<[name: string, result: object]>([
    ["weather", weather],
    ["model", model],
    [
      "members_inside",
      {
        list: [weather, model],
        class: "<class 'result_tools.Weather'>",
        numbers: [1, 2],
      },
    ],
  ])("%s", async ([name, result]) => {
    expect(await answer(name)).toEqual({ result, outputs: {} });
  });

  test("one that cannot tell them fails as the tool", async () => {
    expect(await answer("failing_model")).toEqual({
      error: "Tool raised RuntimeError: cannot be dumped",
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("a value that is still to come is an error that says what to do", () => {
  test.for<[name: string, what: string]>([
    ["generator", "generator, whose values are still to come; make a list of them"],
    [
      "asynchronous_generator",
      "async_generator, whose values are still to come; make a list of them",
    ],
    ["iterator", "map, whose values are still to come; make a list of them"],
    ["open_file", "TextIOWrapper, whose values are still to come; make a list of them"],
    ["unawaited", "coroutine, whose value is still to come; await it"],
  ])("%s", async ([name, what]) => {
    expect(await answer(name)).toEqual({
      error: `The tool returned a ${what}`,
      error_code: "EXECUTION_ERROR",
    });
  });

  test.for<[name: string, what: string]>([
    ["generator", "generator, whose values are still to come; make a list of them"],
    [
      "asynchronous_generator",
      "async_generator, whose values are still to come; make a list of them",
    ],
    ["iterator", "map, whose values are still to come; make a list of them"],
    ["coroutine", "coroutine, whose value is still to come; await it"],
  ])("%s inside a dict", async ([name, what]) => {
    expect(await answer("inside", { what: name })).toEqual({
      error: `The tool's result is not JSON: TypeError: it holds a ${what}`,
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("a dict is the answer as it is", () => {
  test("also a subclass of dict", async () => {
    expect(await answer("dict_subclass")).toEqual({ result: { a: 1 }, outputs: {} });
  });

  test("also one that looks like the runner's own error", async () => {
    expect(await answer("looks_like_failure")).toEqual({
      result: { error: "soft", error_code: "TOOL_NOT_FOUND" },
      outputs: {},
    });
  });

  test("with numbers that JSON does not have as null", async () => {
    expect(await answer("non_finite")).toEqual({
      result: { list: [null, null, null, 1.5], NaN: "key", deep: { x: [null] } },
      outputs: {},
    });
  });

  test("with unknown objects as their text", async () => {
    expect(await answer("unknown_objects")).toEqual({
      result: {
        bytes: "b'abc'",
        bytearray: "bytearray(b'abc')",
        date: "2026-11-20",
        datetime: "2026-11-20 18:42:00+00:00",
        timedelta: "0:01:00",
        set: "{1}",
        frozenset: "frozenset({'a'})",
        enum: "Colour.RED",
        "text enum": "dark",
        decimal: "1.10",
        path: "a/b.txt",
        complex: "(1+2j)",
        range: "range(0, 3)",
        class: "<enum 'Colour'>",
        error: "x",
        tuple: [1, 2],
      },
      outputs: {},
    });
  });

  test("with plain keys as text", async () => {
    expect(await answer("odd_keys")).toEqual({
      result: { 2: "int", true: "bool", "1.5": "float", null: "none" },
      outputs: {},
    });
  });

  test("with lone surrogates as escapes, in a file that is UTF-8", async () => {
    const run = await runTool("result_tools", "surrogates");
    expect(run.document).toEqual({
      result: { lone: "a\ud800b", "key\udfff": "😀", name: "\udcff" },
      outputs: {},
    });
    expect(run.resultText).toContain("a\\ud800b");
    expect(run.resultText).toContain("😀");
  });
});

describe("a result that JSON cannot hold is an error that says why", () => {
  test.for<[name: string, error: string]>([
    [
      "tuple_key",
      "The tool's result is not JSON: TypeError: keys must be str, int, float, bool or None, not tuple",
    ],
    ["circular", "The tool's result is not JSON: ValueError: Circular reference detected"],
    [
      "circular_dataclass",
      "The tool's result is not JSON: ValueError: Circular reference detected",
    ],
    ["deep", "The tool's result is nested too deeply for JSON"],
    ["unprintable", "The tool's result is not JSON: RuntimeError: no text for you"],
    ["exiting_inside_result", "The tool's result is not JSON: SystemExit"],
  ])("%s", async ([name, error]) => {
    expect(await answer(name)).toEqual({ error, error_code: "EXECUTION_ERROR" });
  });

  test("a number with more digits than Python writes", async () => {
    expect(await answer("huge_number")).toEqual({
      error: expect.stringContaining("ValueError: Exceeds the limit (4300") as string,
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("the size of a result is bounded", () => {
  const emptySizeBytes = '{"result":{"x":""},"outputs":{}}'.length;
  const limitBytes = 100_000;

  async function answerOfSize(sizeBytes: number): Promise<unknown> {
    const run = await runTool("result_tools", "large", {
      args: { size: sizeBytes - emptySizeBytes },
      members: { max_result_bytes: limitBytes },
    });
    expect(run.exitCode).toBe(0);
    return run.document;
  }

  test("a result of just the limit passes", async () => {
    const document = (await answerOfSize(limitBytes)) as { result: { x: string } };
    expect(document.result.x).toHaveLength(limitBytes - emptySizeBytes);
  });

  test("a larger one is refused, naming both sizes", async () => {
    expect(await answerOfSize(limitBytes + 1)).toEqual({
      error:
        "The tool's result takes 100001 bytes as JSON, more than the 100000 that are accepted;" +
        " large data can be saved as an artifact",
      error_code: "RESOURCE_EXHAUSTED",
    });
  });

  test(
    "a result of many megabytes is written whole where the limit allows it",
    { tags: "full" },
    async () => {
      const run = await runTool("result_tools", "large", {
        args: { size: 30_000_000 },
        members: { max_result_bytes: 40_000_000 },
      });
      expect(run.resultText).toHaveLength(30_000_000 + emptySizeBytes);
    },
  );

  test("a result appears in one step", async (context) => {
    requiresResultFile(context);
    const seenSizes = new Set<number>();
    let isRunning = true;
    let watching = Promise.resolve();
    const watch = async (workDir: string): Promise<void> => {
      while (isRunning) {
        const file = await stat(join(workDir, "result.json")).catch(() => undefined);
        if (file !== undefined) seenSizes.add(file.size);
      }
    };
    await runTool("result_tools", "large_for_a_while", {
      args: { size: 30_000_000, seconds: 0.2 },
      members: { max_result_bytes: 40_000_000 },
      onStart: (workDir) => {
        watching = watch(workDir);
      },
    });
    isRunning = false;
    await watching;
    expect([...seenSizes]).toEqual([30_000_000 + emptySizeBytes]);
  });

  test("a result that the file system has no room for is an error, not a part of a result", async (context) => {
    requiresResultFile(context);
    const run = await runTool("result_tools", "large", {
      args: { size: 1_000_000 },
      prefix: ["/usr/bin/prlimit", "--fsize=500000"],
    });
    expect(await readdir(run.workDir)).toHaveLength(4);
    expect(run).toMatchObject({
      exitCode: 0,
      document: {
        error: "The tool's result cannot be written: File too large",
        error_code: "RESOURCE_EXHAUSTED",
      },
    });
  });

  test("where nothing can be written, the runner says so on stderr and fails", async (context) => {
    requiresResultFile(context);
    const run = await runTool("result_tools", "text", {
      members: { result_file: "/proc/result.json" },
    });
    expect(run).toMatchObject({
      exitCode: 1,
      document: undefined,
      stderr: "tool_runner: result.json cannot be written: No such file or directory\n",
    });
  });
});
