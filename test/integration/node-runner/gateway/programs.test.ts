/**
 * Programs in JavaScript and TypeScript, which the Node runner runs in place of a tool.
 */
import { describe, expect, test } from "vitest";
import {
  type GatewayRun,
  type ProgramRunOptions,
  type Serve,
  failure,
  result,
  runProgram,
} from "./gateway-run.ts";

const echo: Serve = ({ payload }) => result(payload);

const nothingElse = { stdout: "", stderr: "", displays: [] };

/** What a program comes to. Expects that it is answered, and that nothing warns of anything. */
async function valueOf(code: string, options: ProgramRunOptions = {}): Promise<unknown> {
  const { document, exitCode, stderr } = await runProgram(code, echo, options);
  expect({ exitCode, stderr, document }).toMatchObject({ exitCode: 0, stderr: "" });
  expect(document).toMatchObject({ result: nothingElse });
  return (document?.["result"] as { value: unknown }).value;
}

const errorOf = ({ document }: GatewayRun) => document;

describe("the value of a program is", () => {
  type ValueCase = [what: string, code: string, value: unknown];

  const usual: readonly ValueCase[] = [
    ["its last expression", "const { n } = inputs;\nawait 1;\n({ double: n * 2 })", { double: 6 }],
    ["that of its last statement", "if (inputs.n > 2) { 'more' } else { 'less' }", "more"],
    ["__out before it", "__out = [1, 2];\n3", [1, 2]],
    ["__out that it declares", "let __out = { a: 1 };\n__out.b = 2;\n3", { a: 1, b: 2 }],
  ];
  const other: readonly ValueCase[] = [
    ["null as __out", "__out = null; 3", null],
    ["what a promise as its last expression comes to", "const f = async () => 7;\nf()", 7],
    ["__out that this promise sets", "const f = async () => { await 1; __out = 5 };\nf()", 5],
    ["null without an expression", "const a = 1;", null],
    ["null for what is not JSON", "() => 1", null],
    ["null for nothing", "", null],
    ["a text for a bigint", "10n ** 20n", "100000000000000000000"],
    ["null for what is no number", "0 / 0", null],
    ["JSON of a Map", "new Map([['a', new Set([1])]])", { a: [1] }],
    [
      "of what it declares in place of the globals",
      "const tools = 1, inputs = 2, display = 3; tools + inputs + display",
      6,
    ],
  ];
  const show = async ([, code, value]: ValueCase) => {
    expect(await valueOf(code, { inputs: { n: 3 } })).toEqual(value);
  };

  test.for(usual)("%s", show);
  test.for(other)("%s", { tags: "full" }, show);

  test("not a value that JSON lacks", async () => {
    expect(errorOf(await runProgram("__out = { a: Buffer.from('a') }"))).toEqual({
      error: "__out is not JSON: a is bytes (Buffer); save them as an artifact",
      error_code: "EXECUTION_ERROR",
    });
  });
});

test.for(["javascript", "typescript"])(
  "a byte order mark and a first line for the shell are no part of a program in %s",
  async (language) => {
    expect(await valueOf("#!/usr/bin/env -S node\n1", { language })).toBe(1);
    expect(await valueOf("\ufeff#!/usr/bin/env -S node", { language })).toBe(null);
    const [marked, shell] = await Promise.all(
      ["\ufeffnull.x", "\ufeff#! it's\nnull.x"].map((code) => runProgram(code, echo, { language })),
    );
    expect(marked?.document).toMatchObject({
      error_data: { stack: ["line 1, column 6: null.x"] },
    });
    expect(shell?.document).toMatchObject({ error_data: { stack: ["line 2, column 6: null.x"] } });
  },
);

test("types of TypeScript are stripped", async () => {
  const code = `
    import type { Nothing } from "nowhere";
    import { type Other, a } from "./helper.mjs";
    interface Row { n: number }
    const row = inputs as Row;
    const twice = async <T extends Row>(each: T): Promise<number> => each.n * 2;
    (await twice(row)) + a satisfies number`;
  const files = { "helper.mjs": "export const a = 1;" };
  expect(await valueOf(code, { language: "typescript", inputs: { n: 3 }, files })).toBe(7);
});

describe("imports", () => {
  const files = {
    "helper.mjs": "export const a = 1, b = 2; export default 'usual'; export { a as 'as' };",
    "data.json": '{"rows": 5}',
    "node_modules/pkg/package.json": '{"name": "pkg", "main": "index.cjs"}',
    "node_modules/pkg/index.cjs": "exports.named = 'named'; exports.other = 'other';",
  };
  type ImportCase = [what: string, code: string, value: unknown];

  const usual: readonly ImportCase[] = [
    ["of both", "import d, * as all from './helper.mjs'; [d, all.a]", ["usual", 1]],
    [
      "over several lines, with comments",
      "import {\n  a, // the first\n  b as /* the */ c,\n} from './helper.mjs';\nawait 1; [a, c]",
      [1, 2],
    ],
    [
      "of a package and of Node",
      "import { named } from 'pkg'; import { sep } from 'node:path'; [named, sep]",
      ["named", "/"],
    ],
    [
      "by calls in calls and texts",
      "`${(await import('./helper.mjs')).a}${await import(await 'pkg').then(({ other }) => other)}`",
      "1other",
    ],
  ];
  const other: readonly ImportCase[] = [
    ["of names", "import { a, b as c } from './helper.mjs';\n[a, c]", [1, 2]],
    [
      "of the usual export",
      "import d, { default as e } from './helper.mjs'\n;[d, e]",
      ["usual", "usual"],
    ],
    ["of all", "import * as all from './helper.mjs'; all.b", 2],
    ["in one line without spaces", "import{a}from'./helper.mjs';import'./helper.mjs';a", 1],
    ["of JSON", "import data from './data.json' with { type: 'json' }; data.rows", 5],
    [
      "of the tools",
      "import { tools as same } from 'secure-tool-runtime/tool'; same === tools",
      true,
    ],
    ["by a call", "const { a } = await import('./helper.mjs'); a", 1],
    [
      "by a call with attributes",
      "(await import ('./data.json', { with: { type: 'json' } })).default.rows",
      5,
    ],
    ["by calls that spread", "[...Object.keys({ ...await import('./helper.mjs') })].length", 4],
    [
      "with quotes in comments",
      "import { a, // it's \"the\" first\n b /* 'second' */ } from './helper.mjs'; [a, b]",
      [1, 2],
    ],
  ];
  const show = async ([, code, value]: ImportCase) => {
    expect(await valueOf(code, { files })).toEqual(value);
  };

  test.for(usual)("%s", show);
  test.for(other)("%s", { tags: "full" }, show);

  test("are told from texts, comments, expressions and members that look like them", async () => {
    const code = `
      // import(1)
      /* import x from "y" */
      const object = { import(x) { return x }, text: 'import("a")', pattern: /import("b")/.source };
      [object.import('c'), object.text, object.pattern, \`import(\${'d'})\`, "import e from 'f'"]`;
    expect(await valueOf(code)).toEqual([
      "c",
      'import("a")',
      'import("b")',
      "import(d)",
      "import e from 'f'",
    ]);
  });

  test.for([
    ["import 'node:fs'; import { sep } from 'node:path'; null.x; sep", 1, 57],
    ["import {\n  sep } from 'node:path'; null.x", 2, 32],
    ["import 'node:fs'; import 'not-there'; 1", 1, 19],
    ["import 'node:fs'; import { sep } from 'node:path'; null.x.; sep", 1, 59],
    ["import 'node:fs'; import x from 'node:path'; return", 1, 46],
  ] as const)("keep the places of errors: %s", async ([code, line, column]) => {
    const { document } = await runProgram(code, echo, { files });
    expect(document).toMatchObject({ error_data: { line, column } });
  });

  test.for([
    ["import { missing } from './helper.mjs';", "does not provide an export named 'missing'"],
    ["import x from 'not-there';", "Cannot find package 'not-there' imported from program.js"],
    [
      "\nawait import('./not-there.mjs')",
      "Cannot find module 'not-there.mjs' imported from program.js",
    ],
  ])("that fail name the reason: %s", async ([code = "", reason]) => {
    const { document } = await runProgram(code, echo, { files });
    expect(document).toMatchObject({
      error: expect.stringContaining(reason!),
      error_data: { line: code.split("\n").length },
    });
  });
});

describe("what a program writes", () => {
  test("comes with its value, and goes on", async () => {
    const code = `
      console.log("to", "stdout"); console.error("to stderr");
      process.stdout.write(Buffer.from("bytes")); process.stdout.write("b2s=", "base64");
      display({ a: [1] }); display("text"); 1`;
    const run = await runProgram(code);
    const written = { stdout: "to stdout\nbytesok", stderr: "to stderr\n" };
    expect(run).toMatchObject(written);
    expect(run.document?.["result"]).toEqual({
      value: 1,
      ...written,
      displays: [{ a: [1] }, "text"],
    });
  });

  test("is cut after 64 KiB, between characters", async () => {
    const code = "for (const _ of Array(100)) console.log('ü'.repeat(1000)); console.error('x')";
    const run = await runProgram(code);
    const { stdout, stderr } = run.document?.["result"] as { stdout: string; stderr: string };
    expect(run.stdout).toHaveLength(100 * 1001);
    expect(stderr).toBe("x\n");
    expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(64 * 1024);
    expect(Buffer.byteLength(stdout)).toBeGreaterThan(64 * 1024 - 4);
    expect(stdout).toMatch(/ü…$/);
  });

  test("is displayed up to a bound", async () => {
    const code = `
      const tryIt = (value) => { try { display(value) } catch (error) { return \`\${error}\` } };
      display("x".repeat(200_000));
      const told = [tryIt("x".repeat(100_000)), tryIt(() => 1), tryIt(1n)];
      told`;
    const run = await runProgram(code);
    const refusal = "RangeError: A program displays at most 100 values of 262144 bytes in all";
    expect(run.document).toMatchObject({
      result: {
        value: [refusal, "TypeError: The value is not JSON: it is a function", null],
        displays: ["x".repeat(200_000), "1"],
      },
    });
    const many = await runProgram("for (let i = 0; i < 101; i += 1) display(i)");
    expect(many.document).toMatchObject({ error: `Program threw ${refusal} (line 1)` });
  });
});

describe("a value is no deeper than the worker reads:", () => {
  const nested = (levels: number) =>
    `let x = []; for (let i = 1; i < ${levels}; i += 1) x = [x];\n`;

  test("of 97 levels", async () => {
    const { document } = await runProgram(`${nested(97)}display(x); x`);
    const { value, displays } = document?.["result"] as { value: unknown; displays: unknown[] };
    expect(value).not.toBeNull();
    expect(displays).toEqual([value]);
  });

  test.for([
    ["display(x)", /^Program threw TypeError: The value is not JSON: .* is nested more than 97/],
    ["__out = x", /^__out is not JSON: .* is nested more than 97 levels deep$/],
  ] as const)("%s of 98 is refused", async ([use, error]) => {
    const { document } = await runProgram(nested(98) + use);
    expect(document).toMatchObject({
      error: expect.stringMatching(error),
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("a program calls tools", () => {
  const calls = `
    const rows = await tools.sales.query({ region: inputs.region });
    const all = await Promise.all([1, 2].map((n) => tools.call("echo", { n })));
    let code = "";
    try { await tools.refused(); } catch (error) { code = error.code; }
    __out = { rows, all, code };`;
  const serve: Serve = ({ payload }) =>
    payload["id"] === "refused"
      ? failure({ error: "no", code: "NOT_ALLOWED", retryable: false })
      : result(payload);
  const expected = {
    rows: { id: "sales:query", args: { region: "West" } },
    all: [1, 2].map((n) => ({ id: "echo", args: { n } })),
    code: "NOT_ALLOWED",
  };

  test.for([
    ["javascript", false],
    ["typescript", false],
    ["javascript", true],
    ["typescript", true],
  ] as const)("in %s (parked: %s)", async ([language, isParked]) => {
    const options = { language, isParked, inputs: { region: "West" } };
    const run = await runProgram(calls, serve, options);
    expect(run).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    expect(run.document).toEqual({ result: { value: expected, ...nothingElse }, outputs: {} });
  });

  test.for([
    ["ends", "tools.slow(); tools.slow().then(() => 1); await tools.echo(); 1", { result: {} }],
    [
      "fails",
      "tools.slow(); tools.slow(); await tools.echo();\nnull.x",
      { error: expect.stringContaining("(line 2)") },
    ],
  ] as const)("and cancels those that run when it %s", async ([, code, document]) => {
    const run = await runProgram(code, (request, gateway) => {
      if (request.type === "cancel") {
        gateway.answer(request.id, failure({ error: "cancelled", code: "CANCELLED" }));
      }
      return request.payload?.["id"] === "echo" ? result({}) : undefined;
    });
    expect(run.document).toMatchObject(document);
    expect(run.stderr).not.toMatch(/CANCELLED|ended what was still running/);
    expect(run.requests.map(({ type, id }) => [type, id]).slice(3)).toEqual([
      ["cancel", "1"],
      ["cancel", "2"],
    ]);
  });

  test("and ends where it has only just begun to call", async () => {
    const run = await runProgram("tools.slow(); setTimeout(() => void tools.slow(), 20); 1");
    expect(run).toMatchObject({ stderr: "", document: { result: { value: 1 } } });
    const sent = (type: string) => run.requests.filter((each) => each.type === type).length;
    expect(sent("cancel")).toBe(sent("run_tool"));
  });

  test("and what a call throws has the line of the program", async () => {
    const run = await runProgram("const a = 1;\nawait tools.refused();", serve);
    expect(run.document).toEqual({
      error: "Program threw ToolCallError: no (line 2)",
      error_code: "EXECUTION_ERROR",
      error_data: { line: 2, column: 1, stack: ["line 2, column 1: await tools.refused();"] },
    });
  });
});

describe("an error of a program", () => {
  test.for(["javascript", "typescript"])("has its lines in %s", async (language) => {
    const code =
      "import { sep } from 'node:path';\nfunction f(x) {\n  return x.y;\n}\nawait 1;\nf(null);";
    const run = await runProgram(code, echo, { language });
    expect(run.document).toEqual({
      error: "Program threw TypeError: Cannot read properties of null (reading 'y') (line 3)",
      error_code: "EXECUTION_ERROR",
      error_data: {
        line: 3,
        column: 12,
        stack: ["line 3, column 12, in f: return x.y;", "line 6, column 1: f(null);"],
      },
    });
  });

  test(
    "may come after a while, by a promise, or from deep within a library",
    { tags: "full" },
    async () => {
      const late = await runProgram(
        "setTimeout(() => {\n  throw new Error('late')\n});\nawait new Promise((resolve) => setTimeout(resolve, 60_000));",
      );
      expect(late.document).toMatchObject({ error: "Program threw Error: late (line 2)" });
      const promise = await runProgram("const f = async () => {\n  await 1;\n  null.x;\n};\nf()");
      expect(promise.document).toMatchObject({ error_data: { line: 3 } });
      const deep = await runProgram("import { dive } from './deep.mjs';\n\ndive(20);", echo, {
        files: { "deep.mjs": "export const dive = (n) => n === 0 ? null.x : dive(n - 1);" },
      });
      expect(deep.document).toMatchObject({ error_data: { line: 3, column: 1 } });
    },
  );

  test.for([
    ["async function save() {\n  await 0;\n  throw new Error('not saved');\n}", "save()", "Error"],
    ["globalThis.setImmediate = () => {};\n\n", "Promise.reject(new Error('not saved'))", "Error"],
    ["const save = async () => {\n\n  await tools.call('nope') }", "save()", "ToolCallError"],
  ])("is one that nothing awaits, too: %s", async ([before, call, kind]) => {
    const { document } = await runProgram(`${before}\n${call};\n__out = "done"`, echo, {
      members: { gateway: undefined },
    });
    expect(document).toMatchObject({
      error: expect.stringMatching(new RegExp(`^Program threw ${kind}: .* \\(line [34]\\)$`)),
      error_code: "EXECUTION_ERROR",
    });
  });

  test.for(["console.error(new Error('mine'))", "throw new Error('mine')"])(
    "is printed without files of the runner: %s",
    async (code) => {
      const { stderr } = await runProgram(`const f = () => {\n  ${code};\n};\nf();`);
      const files = stderr.match(/(?<=^ {4}at .*)[^ (]+(?=:\d+:\d+)/gm);
      const own = files?.filter((file) => !file.startsWith("node:"));
      expect({ stderr, own }).toMatchObject({
        stderr: expect.stringContaining("Error: mine"),
        own: ["program.js", "program.js"],
      });
    },
  );

  test("that the program reports on purpose is its own text", async () => {
    const code =
      "import { ToolError } from 'secure-tool-runtime/tool';\nthrow new ToolError('no such row')";
    expect((await runProgram(code)).document).toEqual({
      error: "no such row",
      error_code: "TOOL_ERROR",
    });
  });

  type EndCase = [code: string, error: string];
  test.for<EndCase>([
    ["throw null", "Program threw null"],
    ["process.exit(0)", "Program called process.exit(0)"],
    [
      "await new Promise(() => {})",
      "Program never ends: it waits for a promise that nothing is left to settle",
    ],
  ])("%s is answered", async ([code, error]) => {
    const { document } = await runProgram(code);
    expect(document).toEqual({ error, error_code: "EXECUTION_ERROR" });
  });
});

describe("a syntax error runs nothing, and has line and column:", () => {
  type SyntaxCase = [code: string, language: string, line: number, column: number, text: string];

  const usual: readonly SyntaxCase[] = [
    ["const y = ;", "javascript", 2, 11, "Unexpected token ';'"],
    [
      "import { sep } from 'node:path';\n  let y = {",
      "javascript",
      3,
      12,
      "Unexpected end of input",
    ],
    ["\tenum A {}", "typescript", 2, 2, "TypeScript enum is not supported"],
  ];
  const other: readonly SyntaxCase[] = [
    ["  return 1", "javascript", 2, 3, "Illegal return statement"],
    ["let a; let a;", "javascript", 2, 12, "Identifier 'a' has already been declared"],
    ["export const a = 1", "javascript", 2, 1, "Unexpected token 'export'"],
    ["import.meta.url", "javascript", 2, 8, "Cannot use 'import.meta' outside a module"],
    ["let y: = 5", "typescript", 2, 8, "Unexpected token `=`. Expected"],
    ["let a = 1; let a = 2;", "typescript", 2, 16, "Identifier 'a' has already been declared"],
    ["import source x from 'y'", "javascript", 2, 1, "This import is not supported"],
  ];
  const show = async ([code, language, line, column, text]: SyntaxCase) => {
    const run = await runProgram(`console.log("running");\n${code}`, echo, { language });
    expect(run).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    expect(run.document).toMatchObject({
      error_code: "EXECUTION_ERROR",
      error_data: { line, column },
    });
    expect(run.document?.["error"]).toContain(`SyntaxError: ${text}`);
    expect(run.document?.["error"]).toContain(`(line ${line}, column ${column})`);
  };

  test.for(usual)("%s (%s)", show);
  test.for(other)("%s (%s)", { tags: "full" }, show);
});

test("the source of a program is in no file", async () => {
  const code = `
    import { readdirSync, readFileSync } from "node:fs";
    readdirSync(".", { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
      .filter((each) => readFileSync(each.parentPath + "/" + each.name, "utf8").includes("in no file")).length`;
  expect(await valueOf(code)).toBe(0);
});

test.for<[members: object, problem: string]>([
  [{ program: { language: "ruby" } }, '"program.language" must be javascript or typescript'],
  [{ args: { code: 1 } }, '"args.code" must be a text'],
  [{ args: { code: "1", inputs: [] } }, '"args.inputs" must be an object'],
])("arguments that describe no program are refused: %j", async ([members, problem]) => {
  const run = await runProgram("1", echo, { members });
  expect(run).toMatchObject({ exitCode: 1, document: undefined });
  expect(run.stderr).toContain(problem);
});
