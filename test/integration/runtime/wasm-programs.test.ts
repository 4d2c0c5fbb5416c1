/**
 * Programs in the wasm backend: values, output, tools, failures.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { openWasm } from "../../../worker/runtime/wasm/open.ts";
import { execute, failure } from "../../support/runtime/programs.ts";

let wasm: RuntimeBackend;
beforeAll(async () => {
  wasm = await openWasm();
});
afterAll(() => wasm[Symbol.asyncDispose]());

const valueOf = async (code: string): Promise<unknown> => (await execute(wasm, code)).value;

describe("values", () => {
  it.each<[string, string, unknown]>([
    ["__out", "__out = { a: [1, 'b', null] }; 5", { a: [1, "b", null] }],
    ["__out of a declaration", "const __out = 3; 5", 3],
    ["an awaited __out", "__out = Promise.resolve(3)", 3],
    ["null as __out", "__out = null; 5", null],
    ["the last expression", "const a = 2; a * 3", 6],
    ["the last statement", "for (let i = 0; i < 3; i++) i", 2],
    ["a call of an async function", "async function main() { return 42 }\nmain()", 42],
    ["awaits at the top level", "const a = await Promise.resolve(4); a", 4],
    ["no JSON", "() => 1", null],
    ["nothing", "let a", null],
    ["types", "interface A { b: number }\nconst a: A = { b: 1 };\na satisfies A", { b: 1 }],
    [
      "what JSON.stringify loses",
      "[new Map([['a', 1n]]), new Set([NaN]), new Error('x')]",
      [...[{ a: "1" }, [null], "Error: x"]],
    ],
    ["a date", "({ at: new Date(0) })", { at: "1970-01-01T00:00:00.000Z" }],
    ["text of all kinds", "'ä€😀\\u0000\\ud800'", "ä€😀\u0000\ud800"],
    ["inputs", "inputs", {}],
    ["timers", "await new Promise((go) => setTimeout(go, 1, 7))", 7],
    ["a first line for a shell", "#!/usr/bin/env node\n8", 8],
  ])("are %s", async (_, code, value) => {
    expect(await valueOf(code)).toStrictEqual(value);
  });

  it("are JavaScript where the request says so", async () => {
    const request = { language: "javascript" };
    expect((await execute(wasm, "1 < 2", request)).value).toBe(true);
    const error = await failure(execute(wasm, "const a: number = 1", request));
    expect(error).toMatchObject({ code: "EXECUTION_FAILED", data: { line: 1, column: 8 } });
  });

  it.each([
    ["__out = () => 1", "__out is not JSON: it is a function"],
    ["const a = {}; a.b = { a }; __out = a", "__out is not JSON: b.a is circular"],
    ["__out = { a: Promise.resolve(1) }", "__out is not JSON: a is a promise; await it"],
    ["__out = new Uint8Array(1)", "__out is not JSON: it is bytes"],
    ["__out = [1].values()", "is an iterator"],
    ["let a = []; for (let i = 0; i < 98; i++) a = [a]; __out = a", "is nested too deeply"],
    ["__out = { get a() { throw new Error('mine') } }", "Error: mine"],
  ])("are refused: %s", async (code, message) => {
    const error = await failure(execute(wasm, code));
    expect(error.code).toBe("EXECUTION_FAILED");
    expect(error.message).toContain(message);
  });
});

describe("output", () => {
  it("is told by stream, as text and as JSON", async () => {
    const code =
      "console.log('a', 1, { b: [2] }); console.info(null); console.error('c', undefined)";
    const { stdout, stderr } = await execute(wasm, code);
    expect({ stdout, stderr }).toEqual({
      stdout: 'a 1 {"b":[2]}\nnull\n',
      stderr: "c undefined\n",
    });
  });

  it("is what came before a failure, too", async () => {
    const error = await failure(execute(wasm, "console.log('before'); null.x"));
    expect(error.partial).toMatchObject({ stdout: "before\n", stderr: "" });
  });

  it("belongs to one execution", async () => {
    await execute(wasm, "console.log('first')");
    expect((await execute(wasm, "console.log('second')")).stdout).toBe("second\n");
  });
});

describe("tools", () => {
  it.each<[string, string, unknown]>([
    ["call", "await tools.call('math:add', { a: 1, b: 2 })", { sum: 3 }],
    ["members", "await tools.math.add({ a: 1, b: 2 })", { sum: 3 }],
    [
      "chain",
      "await tools.chain([{ tool: 'math:add', args: { a: 1, b: 2 } }, { tool: 'text:echo', usePrevious: true }])",
      { previous: { sum: 3 } },
    ],
    [
      "stepResultsOf",
      "tools.stepResultsOf(await tools.chain([{ tool: 'text:echo' }]))",
      [{ toolId: "text:echo", structured: {}, artifacts: [] }],
    ],
    ["artifactsOf", "tools.artifactsOf(await tools.text.echo())", []],
    ["search", "(await tools.search('adds')).map(({ id }) => id)", ["math:add"]],
    ["namespaces", "await tools.namespaces()", ["math", "text"]],
    [
      "describe",
      "(await tools.describe('math:add', { level: 'summary' })).summary",
      "Adds two numbers.",
    ],
    ["examples", "(await tools.examples('math:add'))[0].args", { a: 1, b: 2 }],
    [
      "many at a time",
      "(await Promise.all(Array.from({ length: 50 }, (_, a) => tools.math.add({ a, b: 1 })))).length",
      50,
    ],
  ])("have %s", async (_, code, value) => {
    expect(await valueOf(code)).toEqual(value);
  });

  it.each([
    ["await tools.text.fail()", ["ToolCallError", "EXECUTION_ERROR", "Error: no luck"]],
    ["await tools.call('no:such')", ["ToolCallError", "NOT_ALLOWED", expect.any(String)]],
    ["await tools.call('math:add', [1])", ["TypeError", undefined, "args must be an object"]],
    ["await tools.call(1)", ["TypeError", undefined, "id must be text, not number"]],
    ["await tools.loadArtifact('a')", ["ToolCallError", "NOT_ALLOWED", expect.any(String)]],
    [
      "await tools.describe('math:add', { level: 'x' })",
      ["RangeError", undefined, expect.any(String)],
    ],
  ])("reject: %s", async (code, facts) => {
    const caught = `try { ${code} } catch (error) { __out = [error.name, error.code ?? null, error.message] }`;
    expect(await valueOf(caught)).toEqual(facts.map((fact: unknown) => fact ?? null));
  });

  it("are instances of ToolCallError with the steps of a chain", async () => {
    const steps = "[{ tool: 'text:echo' }, { tool: 'text:fail' }]";
    const code = `try { await tools.chain(${steps}) } catch (error) { __out = [error instanceof ToolCallError, error.stepResults.map((step) => step.toolId)] }`;
    expect(await valueOf(code)).toEqual([true, ["text:echo", "text:fail"]]);
  });

  it("are called while the program goes on", async () => {
    const code =
      "let done = false; const call = tools.text.echo().then(() => (done = true)); while (!done) await new Promise((go) => setTimeout(go, 1)); 'answered'";
    expect(await valueOf(code)).toBe("answered");
  });

  it("count and are recorded", async () => {
    const { toolCalls } = await execute(wasm, "await tools.math.add({ a: 1, b: 1 })");
    expect(toolCalls).toMatchObject([{ toolId: "math:add" }]);
    const limited = execute(wasm, "await tools.text.echo(); await tools.text.echo()", {
      limits: { maxToolCalls: 1 },
    });
    expect((await failure(limited)).message).toContain("may make 1 calls");
  });
});

describe("failures", () => {
  it("have the program's own lines", async () => {
    const code = "function inner() {\n  throw new TypeError('bad');\n}\nawait 1;\ninner();";
    const error = await failure(execute(wasm, code));
    expect(error.code).toBe("EXECUTION_FAILED");
    expect(error.message).toBe("execution failed: Program threw TypeError: bad (line 2)");
    expect(error.data).toEqual({
      ...{ line: 2, column: 13 },
      stack: [
        "line 2, column 13, in inner: throw new TypeError('bad');",
        "line 5, column 1: inner();",
      ],
    });
  });

  it("of calls have the line of the call", async () => {
    const error = await failure(execute(wasm, "const a = 1;\nawait tools.text.fail();"));
    expect(error.data).toMatchObject({ line: 2 });
  });

  it.each([
    ["let a = ;", "SyntaxError: ", { line: 1, column: 9 }],
    ["console.log('ran');\n\n  foo(", "SyntaxError: ", { line: 3 }],
    ["enum A { B }", "not supported in strip-only mode", { line: 1, column: 1 }],
    ["return 5", "SyntaxError: ", { line: 1 }],
    ["1;\nimport fs from 'node:fs'; fs", "cannot import or export", { line: 2 }],
    ["import 'node:fs'", "cannot import or export", { line: 1 }],
    ["export const a = 1", "cannot import or export", { line: 1 }],
  ])("of syntax run nothing: %j", async (code, message, place) => {
    for (const language of ["typescript", "javascript"]) {
      if (language === "javascript" && code.startsWith("enum")) continue;
      const error = await failure(execute(wasm, code, { language }));
      expect(error.code).toBe("EXECUTION_FAILED");
      expect(error.message).toContain(message);
      expect(error.data).toMatchObject(place);
      expect(error.partial?.stdout).toBe("");
    }
  });

  it.each([
    ["await import('node:fs')", "cannot import"],
    ["Promise.reject(new Error('lost')); 5", "Error: lost"],
    ["await new Promise(() => {})", "awaits a promise that nothing settles"],
    ["queueMicrotask(() => { throw new Error('job') }); await 1; 2", "Error: job"],
    ["throw null", "threw null"],
    ["throw { a: 1 }", 'an object: {"a":1}'],
    [
      "throw new Error('outer', { cause: new TypeError('inner') })",
      "Error: outer (cause: TypeError: inner)",
    ],
    [
      "throw new Proxy({}, { get() { throw 1 }, has() { throw 1 }, ownKeys() { throw 1 } })",
      "an object",
    ],
    [
      "throw Object.defineProperty(new Error(), 'message', { get() { throw 1 } })",
      "its text cannot be had",
    ],
    [
      "setTimeout(() => { throw new Error('late') }, 1); await new Promise((go) => setTimeout(go, 50))",
      "Error: late",
    ],
  ])("are told: %s", async (code, message) => {
    const error = await failure(execute(wasm, code));
    expect(error.code).toBe("EXECUTION_FAILED");
    expect(error.message).toContain(message);
  });
});
