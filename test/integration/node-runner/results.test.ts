/**
 * What becomes of the values that tools return.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  answerHere,
  answerOf,
  removeWorkDirs,
  requiresResultFile,
  runBody,
} from "./run-node-tool.ts";

afterAll(removeWorkDirs);

function resultOf(expression: string): Promise<unknown> {
  return answerHere(`return ${expression}`);
}

test.for([
  ["a text", "'plain'", text("plain")],
  ["an object", "{ at: new Date(0) }", { result: { at: "1970-01-01T00:00:00.000Z" }, outputs: {} }],
] as const)("%s is answered by a process of its own, too", async ([, expression, document]) => {
  expect(await answerOf(`return ${expression}`)).toEqual(document);
});

function text(value: string | null): object {
  return { result: { text: value, data_objects: [] }, outputs: {} };
}

describe("what is no object becomes its text", () => {
  test.for<[expression: string, text: string | null]>([
    ["undefined", null],
    ["null", null],
    ["'plain'", "plain"],
    ["'null'", "null"],
    ["'{\"a\":1}'", '{"a":1}'],
    ["''", ""],
    ["true", "true"],
    ["1.5", "1.5"],
    ["NaN", "NaN"],
    ["-Infinity", "-Infinity"],
    ["12345678901234567890n", "12345678901234567890"],
    ["[1, 'two', [null]]", '[1,"two",[null]]'],
    ["new Set([1, 2])", "[1,2]"],
    ["new Date(0)", "1970-01-01T00:00:00.000Z"],
    ["new Date(NaN)", null],
    ["new String('boxed')", "boxed"],
    ["new URL('https://example.com')", "https://example.com/"],
    ["new RangeError('too far')", "RangeError: too far"],
  ])("%s", async ([expression, expected]) => {
    expect(await resultOf(expression)).toEqual(text(expected));
  });
});

describe("an object is the answer as it is", () => {
  test.for<[what: string, expression: string, result: object]>([
    ["an empty one", "{}", {}],
    ["one without a prototype", "Object.assign(Object.create(null), { a: 1 })", { a: 1 }],
    [
      "one that looks like the runner's own error",
      "{ error: 'soft', error_code: 'TOOL_NOT_FOUND' }",
      { error: "soft", error_code: "TOOL_NOT_FOUND" },
    ],
    ["numbers that JSON does not have, as null", "{ a: [NaN, 1 / 0, -0] }", { a: [null, null, 0] }],
    ["a date, as its ISO text", "{ at: new Date(0) }", { at: "1970-01-01T00:00:00.000Z" }],
    ["a bigint, as its text", "{ n: 2n ** 64n }", { n: "18446744073709551616" }],
    ["a Map", "new Map([['a', 1], [2, new Map([[null, 3]])]])", { a: 1, 2: { null: 3 } }],
    ["a Set, as an array", "{ s: new Set(['a', 'a']) }", { s: ["a"] }],
    ["an error, as its text", "{ error: new TypeError('odd') }", { error: "TypeError: odd" }],
    [
      "an instance of a class, by its enumerable properties",
      "new (class { a = 1; #b = 2; get c() { return 3; } })()",
      { a: 1 },
    ],
    [
      "what toJSON says",
      "{ x: { toJSON: (key) => ({ key, n: 1n }) } }",
      { x: { key: "x", n: "1" } },
    ],
    ["an object with a getter", "{ get a() { return 1; } }", { a: 1 }],
    [
      "without what JSON leaves out",
      "{ f() {}, u: undefined, s: Symbol('s'), list: [() => 1, undefined, , Symbol('s')] }",
      { list: [null, null, null, null] },
    ],
    [
      "the same object twice",
      "((same) => ({ a: same, b: [same] }))({ x: 1 })",
      { a: { x: 1 }, b: [{ x: 1 }] },
    ],
  ])("%s", async ([, expression, result]) => {
    expect(await resultOf(expression)).toEqual({ result, outputs: {} });
  });

  test("a key that is called __proto__ is a key like others", async () => {
    const run = await runBody(`return { ["__proto__"]: { a: 1 }, m: new Map([["__proto__", 2]]) }`);
    expect(run.resultText).toBe(
      '{"result":{"__proto__":{"a":1},"m":{"__proto__":2}},"outputs":{}}',
    );
  });

  test("lone surrogates are escapes, in a file that is UTF-8", async () => {
    const run = await runBody(String.raw`return { lone: "a\ud800b", "key\udfff": "😀" }`);
    expect(run.document).toEqual({ result: { lone: "a\ud800b", "key\udfff": "😀" }, outputs: {} });
    expect(run.resultText).toContain(String.raw`a\ud800b`);
    expect(run.resultText).toContain("😀");
  });
});

describe("what JSON cannot hold is an error that says what and where", () => {
  const stream = "is an iterator or a stream";
  test.for<[expression: string, reason: string]>([
    ["() => 1", "it is a function"],
    ["Symbol('s')", "it is a symbol"],
    ["Buffer.from('abc')", "it is bytes (Buffer); save them as an artifact"],
    [
      "{ rows: [{ image: new Uint8Array(3) }] }",
      "rows.0.image is bytes (Uint8Array); save them as an artifact",
    ],
    ["{ b: new ArrayBuffer(3) }", "b is bytes (ArrayBuffer); save them as an artifact"],
    ["{ b: new Float64Array(3) }", "b is bytes (Float64Array); save them as an artifact"],
    ["{ pending: [Promise.resolve(1)] }", "pending.0 is a promise; await it"],
    ["(function* () { yield 1; })()", `it ${stream} (Object); read it into an array`],
    ["{ rows: (async function* () {})() }", `rows ${stream} (Object); read it into an array`],
    ["{ keys: new Map().keys() }", `keys ${stream} (Iterator); read it into an array`],
    ["{ body: new Response('x').body }", `body ${stream} (ReadableStream); read it into an array`],
    ["{ h: new Headers({ a: 'b' }) }", `h ${stream} (Headers); read it into an array`],
    ["((a) => (a.b = { c: [a] }, a))({})", "b.c.0 is circular"],
    ["((m) => m.set('self', m))(new Map())", "self is circular"],
    ["{ m: new Map([[{}, 1]]) }", "m is a Map with a key that is no text but Object"],
    ["{ get a() { throw new TypeError('no a'); } }", "TypeError: no a"],
    ["{ toJSON() { throw 'no text for you' } }", "a string: no text for you"],
  ])("%s", async ([expression, reason]) => {
    expect(await resultOf(expression)).toEqual({
      error: `The tool's result is not JSON: ${reason}`,
      error_code: "EXECUTION_ERROR",
    });
  });

  const nested = (levels: number) =>
    `return Array.from({ length: ${levels} }).reduce((inner) => ({ inner }), {})`;

  test("more levels than the worker reads", async () => {
    expect(await answerHere(nested(98))).toHaveProperty("result");
    const place = Array.from({ length: 99 }, () => "inner").join(".");
    expect(await answerHere(nested(99))).toEqual({
      error: `The tool's result is not JSON: ${place} is nested more than 99 levels deep`,
      error_code: "EXECUTION_ERROR",
    });
    expect(await answerHere(nested(100_000))).toMatchObject({ error_code: "EXECUTION_ERROR" });
  });
});

describe("the size of a result is bounded", () => {
  const emptySizeBytes = '{"result":{"x":""},"outputs":{}}'.length;
  const limitBytes = 100_000;
  const ofSize = (sizeBytes: number) => `return { x: "x".repeat(${sizeBytes - emptySizeBytes}) }`;
  const members = { max_result_bytes: limitBytes };

  test("a result of just the limit passes", async () => {
    const { result } = (await answerOf(ofSize(limitBytes), { members })) as {
      result: { x: string };
    };
    expect(result.x).toHaveLength(limitBytes - emptySizeBytes);
  });

  test("a larger one is refused, naming both sizes", async () => {
    expect(await answerOf(ofSize(limitBytes + 1), { members })).toEqual({
      error:
        "The tool's result takes 100001 bytes as JSON, more than the 100000 that are accepted;" +
        " large data can be saved as an artifact",
      error_code: "RESOURCE_EXHAUSTED",
    });
  });

  test("it is bytes that count, not characters", async () => {
    expect(await answerOf(`return "é".repeat(${limitBytes / 2})`, { members })).toMatchObject({
      error_code: "RESOURCE_EXHAUSTED",
    });
  });

  test("a result appears in one step", { tags: "full" }, async (context) => {
    requiresResultFile(context);
    const sizeBytes = 30_000_000;
    const seenSizes = new Set<number>();
    let isRunning = true;
    let watching = Promise.resolve();
    const watch = async (workDir: string): Promise<void> => {
      while (isRunning) {
        const file = await stat(join(workDir, "result.json")).catch(() => undefined);
        if (file !== undefined) seenSizes.add(file.size);
      }
    };
    await runBody(`setTimeout(() => {}, 200); ${ofSize(sizeBytes)}`, {
      members: { max_result_bytes: 40_000_000 },
      onStart: (workDir) => {
        watching = watch(workDir);
      },
    });
    isRunning = false;
    await watching;
    expect([...seenSizes]).toEqual([sizeBytes]);
  });

  test("a result that the file system has no room for is an error, not a part of a result", async (context) => {
    requiresResultFile(context);
    const run = await runBody(ofSize(1_000_000), {
      prefix: ["/usr/bin/prlimit", "--fsize=500000"],
    });
    expect(await readdir(run.workDir)).toHaveLength(4);
    expect(run).toMatchObject({
      exitCode: 0,
      document: {
        error: "The tool's result cannot be written: EFBIG: file too large",
        error_code: "RESOURCE_EXHAUSTED",
      },
    });
  });

  test("where nothing can be written, the runner says so on stderr and fails", async (context) => {
    requiresResultFile(context);
    const members = { result_file: "/proc/result.json" };
    expect(await runBody("return 1", { members })).toMatchObject({
      exitCode: 1,
      document: undefined,
      stderr: expect.stringMatching(
        /^tool_runner: result.json cannot be written: Error: ENOENT: .*\n$/,
      ),
    });
  });
});
