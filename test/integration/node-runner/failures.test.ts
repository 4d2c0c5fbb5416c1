/**
 * How a tool's failure is told: a code, a text that may be published, and the stack on stderr only.
 */
import { dirname } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Failure } from "../../../tool-runner/node/errors.js";
import { errorDocument } from "../../../tool-runner/node/protocol.js";
import {
  answerHere,
  answerOf,
  removeWorkDirs,
  runBody,
  runTool,
  runnerDir,
  toolsDirectory,
} from "./run-node-tool.ts";

afterAll(removeWorkDirs);

describe("what a tool throws is an EXECUTION_ERROR with class and text", () => {
  test.for<[body: string, what: string]>([
    ["throw new TypeError('no such column')", "TypeError: no such column"],
    ["throw new Error()", "Error"],
    ["throw new (class OddError extends Error {})('x')", "OddError: x"],
    ["await Promise.reject(new RangeError('later'))", "RangeError: later"],
    ["null.x", "TypeError: Cannot read properties of null (reading 'x')"],
    ["(function f() { f(); })()", "RangeError: Maximum call stack size exceeded"],
    ["AbortSignal.abort().throwIfAborted()", "AbortError: This operation was aborted"],
    [
      "const vm = process.getBuiltinModule('node:vm'); vm.runInNewContext('null.x')",
      "TypeError: Cannot read properties of null (reading 'x')",
    ],
    ["throw 'text'", "a string: text"],
    ["throw 42", "a number: 42"],
    ["throw undefined", "undefined"],
    ["throw null", "null"],
    ["throw { code: 7 }", 'an object: {"code":7}'],
    ["throw () => {}", "a function"],
    ["throw { get message() { throw 1 }, stack: '' }", "Object: (its text cannot be had)"],
    [
      "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 }, ownKeys() { throw 1 } })",
      "an object: (its text cannot be had)",
    ],
    ["throw Object.assign(new Error('x'), { name: { toString() { throw 1 } } })", "Error: x"],
    [
      "throw new Error('outer', { cause: new TypeError('inner', { cause: 'text' }) })",
      "Error: outer (cause: TypeError: inner (cause: a string: text))",
    ],
    [
      "const loop = new Error('loop'); loop.cause = loop; throw loop",
      `${"Error: loop (cause: ".repeat(5)}Error: loop${")".repeat(5)}`,
    ],
    [
      "await Promise.any([1, 2, 3, 4].map((n) => Promise.reject(new Error(n))))",
      "AggregateError: All promises were rejected (cause: Error: 1; Error: 2; Error: 3)",
    ],
    ["await fetch('http://127.0.0.1:1')", "TypeError: fetch failed (cause: Error: bad port)"],
  ])("%s", async ([body, what]) => {
    expect(await answerHere(body)).toEqual({
      error: `Tool threw ${what}`,
      error_code: "EXECUTION_ERROR",
    });
  });

  test("in a process of its own, too", async () => {
    expect(await answerOf("throw new TypeError('no such column')")).toEqual({
      error: "Tool threw TypeError: no such column",
      error_code: "EXECUTION_ERROR",
    });
  });

  test.for([
    ["const { openSync } = await import('node:fs'); for (;;) openSync('/dev/null')", "open_files"],
    [
      "const { writeFileSync } = await import('node:fs'); writeFileSync('large', Buffer.alloc(200_000))",
      "file_size",
    ],
  ])("names the limit that it met: %s", async ([body = "", limit]) => {
    const run = await runBody(body, {
      prefix: ["/usr/bin/prlimit", "--nofile=64", "--fsize=100000"],
    });
    expect(run.document).toMatchObject({ error_code: "EXECUTION_ERROR", error_limit: limit });
  });

  test("before anything is awaited, too", async () => {
    const toolsDir = await toolsDirectory({
      "f.mjs": "export function f() { throw new Error('at once') }",
    });
    expect((await runTool("f.mjs", "f", { toolsDir })).document).toMatchObject({
      error: "Tool threw Error: at once",
    });
  });

  test("stderr has the stack, with the lines of the tool's own source", async () => {
    const toolsDir = await toolsDirectory({
      "f.ts": `interface Row { x: { y: number } }
const inner = (rows: Row[]): number =>
  rows[0]!.x.y;

export function f() {
  try {
    return { n: inner([]) };
  } catch (cause) {
    throw new Error("bad row", { cause });
  }
}`,
    });
    const { stderr } = await runTool("f.ts", "f", { toolsDir });
    expect(stderr.replaceAll(`file://${toolsDir}/`, "")).toBe(`Error: bad row
    at f (f.ts:9:11)
        throw new Error("bad row", { cause });
              ^
Caused by: TypeError: Cannot read properties of undefined (reading 'x')
    at inner (f.ts:3:12)
        rows[0]!.x.y;
                 ^
    at f (f.ts:7:17)
        return { n: inner([]) };
                    ^
`);
  });

  test("stderr has no source of packages", async () => {
    const toolsDir = await toolsDirectory({
      "node_modules/thrower/index.js": "exports.fail = () => { throw new Error('x'); };",
      "f.cjs": "const { fail } = require('thrower');\nexports.f = () => fail();",
    });
    const { stderr } = await runTool("f.cjs", "f", { toolsDir });
    expect(stderr).toMatch(
      /^Error: x\n {4}at .*thrower\/index\.js:1:\d+\)\n {4}at .*\/f\.cjs:2:\d+\)\n {8}exports\.f = .*\n +\^\n$/,
    );
  });

  test("a stack that a tool makes up cannot keep the runner from its answer", async () => {
    const toolsDir = await toolsDirectory({
      "f.cjs": `exports.f = () => {
        require("node:child_process").execFileSync("mkfifo", ["pipe"]);
        const files = ["/dev/zero", process.cwd() + "/pipe", "/%zz", "/", "/no/such"];
        const frames = files.map((file) => "    at f (" + file + ":1:1)");
        throw Object.assign(new Error("x"), { stack: ["Error: x", ...frames].join("\\n") });
      };`,
    });
    const { stderr, document } = await runTool("f.cjs", "f", { toolsDir });
    expect(stderr).toMatch(/^Error: x\n( {4}at f \(\/.*:1:1\)\n){5}$/);
    expect(document).toMatchObject({ error: "Tool threw Error: x" });
  });

  test("a text is cut at 4000 characters", async () => {
    const { error } = (await answerHere("throw new Error('é'.repeat(5000))")) as { error: string };
    expect(error).toHaveLength(4000);
    expect(error).toMatch(/^Tool threw Error: é+…$/);
  });

  test("a text is not cut inside a character", async () => {
    const { error } = (await answerHere("throw new Error('😀'.repeat(5000))")) as { error: string };
    expect(error.isWellFormed()).toBe(true);
    expect(error).toHaveLength(3999);
  });

  test("directories of the host are not in the text", async () => {
    const toolsDir = await toolsDirectory({
      "a/b.mjs": `
        export const f = () => {
          throw new Error([import.meta.filename, import.meta.url, process.cwd() + "/input/x.csv", process.argv[1]].join());
        };`,
    });
    const { document } = await runTool("a/b.mjs", "f", { toolsDir });
    expect(document?.["error"]).toBe("Tool threw Error: a/b.mjs,a/b.mjs,input/x.csv,main.js");
  });

  test("directories are not in the text where one lies in another", () => {
    const around = dirname(runnerDir);
    const failure = new Failure("EXECUTION_ERROR", `${runnerDir}/main.js, ${around}/tools/a/b.mjs`);
    const call = { result_file: `${around}/work/result.json`, tools_dir: `${around}/tools` };
    expect(errorDocument(failure, call)).toContain('"error":"main.js, a/b.mjs"');
  });
});

describe("standard error has the stack", () => {
  test("without the runner's frames, with the causes", async () => {
    const { stderr } = await runBody("throw new Error('outer', { cause: new TypeError('inner') })");
    expect(stderr).toMatch(/^Error: outer\n {4}at .*\nCaused by: TypeError: inner\n {4}at /s);
    expect(stderr).not.toContain(runnerDir);
  });

  test("after what the tool printed", async () => {
    const run = await runBody("console.log('out'); console.error('err'); throw new Error('x')");
    expect(run.stdout).toBe("out\n");
    expect(run.stderr).toMatch(/^err\nError: x\n/);
  });

  test("or what was thrown in its place", async () => {
    expect((await runBody("throw 'text'")).stderr).toBe("Uncaught a string: text\n");
  });
});

describe("a ToolError is the tool's own word", () => {
  const throwing = (argument: string) =>
    answerOf(`const { ToolError } = await import("secure-tool-runtime/tool"); ${argument}`);

  test.for<[what: string, body: string, error: string]>([
    ["its text is the whole message", "throw new ToolError('no header')", "no header"],
    [
      "its cause is not in it",
      "throw new ToolError('no header', { cause: new Error('secret') })",
      "no header",
    ],
    [
      "one without a text gets one",
      "throw new ToolError()",
      "The tool reported an error without a text",
    ],
    ["a class derived from it is one", "throw new (class extends ToolError {})('mine')", "mine"],
    [
      "also one that nobody catches",
      "setTimeout(() => { throw new ToolError('later') }); await new Promise(() => {})",
      "later",
    ],
  ])("%s", async ([, body, error]) => {
    expect(await throwing(body)).toEqual({ error, error_code: "TOOL_ERROR" });
  });

  test("its class and name are ToolError", async () => {
    expect(
      await throwing(
        "const e = new ToolError('x'); return { text: `${e}`, is: e instanceof Error }",
      ),
    ).toMatchObject({ result: { text: "ToolError: x", is: true } });
  });
});

describe("what nobody catches while the tool runs is an EXECUTION_ERROR", () => {
  const forEver = "await new Promise((resolve) => setTimeout(resolve, 60_000))";

  type UncaughtCase = [what: string, body: string, error: string];

  const usualUncaught: readonly UncaughtCase[] = [
    [
      "an exception in a timer",
      "setTimeout(() => { throw new TypeError('later') })",
      "Tool threw TypeError: later",
    ],
    [
      "a rejection that nobody handles",
      "void Promise.reject(new TypeError('unseen'))",
      "Tool threw TypeError: unseen",
    ],
  ];
  const otherUncaught: readonly UncaughtCase[] = [
    [
      "an error event that nobody listens for",
      "const { EventEmitter } = await import('node:events'); setTimeout(() => new EventEmitter().emit('error', new Error('unheard')))",
      "Tool threw Error: unheard",
    ],
    [
      "a worker thread that fails",
      "const { Worker } = await import('node:worker_threads'); new Worker('throw new Error(`there`)', { eval: true })",
      "Tool threw Error: there",
    ],
  ];
  const showUncaught = async ([, body, error]: UncaughtCase) => {
    expect(await answerOf(`${body}; ${forEver}`)).toEqual({ error, error_code: "EXECUTION_ERROR" });
  };

  test.for(usualUncaught)("%s", showUncaught);
  test.for(otherUncaught)("%s", { tags: "full" }, showUncaught);

  test("unless the tool listens for it", async () => {
    expect(
      await answerOf(`
        const seen = [];
        process.on("uncaughtException", (error) => seen.push(error.message));
        process.on("unhandledRejection", (error) => seen.push(error.message));
        setTimeout(() => { throw new Error("one") });
        void Promise.reject(new Error("two"));
        await new Promise((resolve) => setTimeout(resolve, 50));
        return { seen: seen.sort() };`),
    ).toMatchObject({ result: { seen: ["one", "two"] } });
  });

  test("after the answer it changes nothing, and is on stderr", async () => {
    const run = await runBody("setTimeout(() => { throw new Error('too late') }, 20); return 1");
    expect(run).toMatchObject({
      exitCode: 0,
      document: { result: { text: "1" } },
      stderr: expect.stringMatching(/^Error: too late\n/),
    });
  });
});

describe("a tool that ends its process", () => {
  type UntoldCase = [body: string, error: string];

  const usualUntold: readonly UntoldCase[] = [
    ["process.exit()", "Tool called process.exit(0)"],
    [
      "process.exitCode = 3; await new Promise(() => {})",
      "Tool never ends: it waits for a promise that nothing is left to settle",
    ],
  ];
  const otherUntold: readonly UntoldCase[] = [
    ["process.exit(0)", "Tool called process.exit(0)"],
    ["process.exit(256)", "Tool called process.exit(256)"],
    [
      "process.exit('text')",
      "Tool threw TypeError: The \"code\" argument must be of type number. Received type string ('text')",
    ],
  ];
  const showUntold = async ([body, error]: UntoldCase) => {
    expect(await answerOf(body)).toEqual({ error, error_code: "EXECUTION_ERROR" });
  };

  test.for(usualUntold)("by %s, which no exit status can tell, is an EXECUTION_ERROR", showUntold);
  test.for(otherUntold)(
    "by %s, which no exit status can tell, is an EXECUTION_ERROR",
    { tags: "full" },
    showUntold,
  );

  type StatusCase = [body: string, exitCode: number];

  const usualStatus: readonly StatusCase[] = [
    ["process.exit(3)", 3],
    [
      "process.once('beforeExit', () => setTimeout(() => process.exit(8), 10)); await new Promise(() => {})",
      8,
    ],
  ];
  const otherStatus: readonly StatusCase[] = [
    ["process.exit(-1)", 255],
    ["process.exit('4')", 4],
    ["process.exitCode = 5; process.exit()", 5],
    ["process.reallyExit(6)", 6],
    ["setTimeout(() => process.exit(7)); await new Promise(() => {})", 7],
  ];
  const showStatus = async ([body, exitCode]: StatusCase) => {
    expect(await runBody(body)).toMatchObject({ exitCode, document: undefined });
  };

  test.for(usualStatus)("by %s ends with this status and no result", showStatus);
  test.for(otherStatus)("by %s ends with this status and no result", { tags: "full" }, showStatus);

  test("by process.exitCode alone has not ended it", async () => {
    expect(await runBody("process.exitCode = 3; return { ok: true }")).toMatchObject({
      exitCode: 0,
      document: { result: { ok: true } },
    });
  });

  test("by a signal leaves no result", async () => {
    expect(
      await runBody("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})"),
    ).toMatchObject({
      signal: "SIGKILL",
      document: undefined,
    });
  });
});

test.for<[what: string, body: string]>([
  ["a promise that nothing settles", "await new Promise(() => {})"],
  [
    "a timer that does not hold the process",
    "await new Promise((resolve) => setTimeout(resolve, 100).unref())",
  ],
])("a tool that waits for %s is told so", async ([, body]) => {
  expect(await answerOf(body)).toEqual({
    error: "Tool never ends: it waits for a promise that nothing is left to settle",
    error_code: "EXECUTION_ERROR",
  });
});

test("a tool that fills its memory is ended by V8, which says so on stderr", async () => {
  const run = await runBody("for (const all = []; ; ) all.push(new Array(1e5).fill(1.5))");
  expect(run).toMatchObject({ signal: "SIGABRT", document: undefined });
  expect(run.stderr).toContain("JavaScript heap out of memory");
});

describe("the state of the output streams does not matter to the answer", () => {
  test.for([
    "process.stdout.destroy(); process.stderr.destroy(); return { ok: true }",
    "const fs = await import('node:fs'); fs.closeSync(1); fs.closeSync(2); return { ok: true }",
    "Object.defineProperty(process, 'stderr', { value: null }); return { ok: true }",
  ])("%s", async (body) => {
    expect(await answerOf(body)).toMatchObject({ result: { ok: true } });
  });

  test("nor that nobody reads stdout any more", async () => {
    const body = "console.log('x'.repeat(1e6)); return { ok: true }";
    expect(await runBody(body, { isStdoutClosed: true })).toMatchObject({
      exitCode: 0,
      document: { result: { ok: true } },
    });
  });

  test("nor that stderr is full while it is read late", async () => {
    const run = await runBody(
      "process.stderr.write('y'.repeat(1e6)); throw new Error('x'.repeat(1e5))",
    );
    // What the tool's own stream has not yet written comes later.
    expect(run.stderr.replaceAll("y", "")).toMatch(/^Error: x{100000}\n/);
  });
});
