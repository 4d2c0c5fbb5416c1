/**
 * How a call's arguments and the context reach functions of every shape, in modules of every kind.
 */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { answerOf, removeWorkDirs, runTool, runnerDir, toolsDirectory } from "./run-node-tool.ts";

afterAll(removeWorkDirs);

async function call(module: string, name: string, args: object = {}): Promise<unknown> {
  const run = await runTool(module, name, { args });
  expect(run).toMatchObject({ exitCode: 0, stderr: "" });
  return run.document;
}

describe("a function gets the arguments as one object, and the context", () => {
  type ShapeCase = [name: string, args: object, result: object];

  const usualShape: readonly ShapeCase[] = [
    ["plain", { name: "Ada €" }, { hello: "Ada €" }],
    ["asynchronous", { name: "Ada" }, { args: { name: "Ada" }, user: "user-42" }],
    ["ignores", { name: "Ada" }, { text: "nothing needed", data_objects: [] }],
    ["default", { name: "Ada" }, { default: "Ada" }],
  ];
  const otherShape: readonly ShapeCase[] = [
    ["plain", {}, { hello: "you" }],
    ["plain", { name: "Ada", unknown: 1 }, { hello: "Ada" }],
    ["arrow", { name: "Ada" }, { args: { name: "Ada" } }],
    ["bound", { name: "Ada" }, { text: "Good morning Ada" }],
    ["thenable", {}, { awaited: true }],
  ];
  const showShape = async ([name, args, result]: ShapeCase) => {
    expect(await call("shapes.js", name, args)).toEqual({ result, outputs: {} });
  };

  test.for(usualShape)("%s(%j)", showShape);
  test.for(otherShape)("%s(%j)", { tags: "full" }, showShape);

  test("also one that is called __proto__, which stays an argument", async () => {
    const run = await runTool("shapes.js", "arrow", {
      members: { args: JSON.parse('{"__proto__": {"polluted": true}}') as object },
    });
    expect(run.resultText).toContain('{"args":{"__proto__":{"polluted":true}}}');
  });
});

describe("a module may be", () => {
  test("in a directory, and import its neighbours", async () => {
    expect(await call("weather/forecast.ts", "forecast", { unit: "celsius" })).toMatchObject({
      result: { text: "12 °C" },
    });
  });

  test.for(["listed", "computed"])("CommonJS, with the export %s", async (name) => {
    expect(await call("classic.cjs", name)).toHaveProperty(["result", name]);
  });

  const usualFile: readonly string[] = ["a b.js", "100%.js"];
  const otherFile: readonly string[] = ["ümlaut.js", "what?.js", "a#b.js"];
  const showFile = async (name: string) => {
    const toolsDir = await toolsDirectory({ [name]: "export const f = () => ({ found: true });" });
    expect((await runTool(name, "f", { toolsDir })).document).toMatchObject({
      result: { found: true },
    });
  };

  test.for(usualFile)("named %s", showFile);
  test.for(otherFile)("named %s", { tags: "full" }, showFile);
});

const usualAbsent: readonly string[] = ["missing", "toString"];
const otherAbsent: readonly string[] = ["notCallable", "then"];
const showAbsent = async (name: string) => {
  expect(await call("shapes.js", name)).toEqual({
    error: `Module "shapes.js" has no function "${name}"`,
    error_code: "TOOL_NOT_FOUND",
  });
};

test.for(usualAbsent)("%s, which is no function of the module, is TOOL_NOT_FOUND", showAbsent);
test.for(otherAbsent)(
  "%s, which is no function of the module, is TOOL_NOT_FOUND",
  { tags: "full" },
  showAbsent,
);

test("tools import the runtime from where a sandbox has it, and its errors are known", async () => {
  const root = await toolsDirectory({
    "node/shapes.ts": `
      import { ToolError, type ToolContext } from "secure-tool-runtime/tool";
      export function refuse(_args: object, ctx: ToolContext) {
        throw new ToolError(\`not for \${ctx.userId}\`);
      }`,
  });
  await cp(runnerDir, join(root, "node_modules/secure-tool-runtime"), { recursive: true });
  const run = await runTool("shapes.ts", "refuse", { toolsDir: join(root, "node") });
  expect(run.document).toEqual({ error: "not for user-42", error_code: "TOOL_ERROR" });
});

test("a tool finds no traces of the runner in its process", async () => {
  expect(
    await answerOf("return { argv: process.argv.length, env: Object.keys(process.env).sort() }"),
  ).toMatchObject({ result: { argv: 2, env: ["LANG", "PATH"] } });
});

describe("a tool may use", () => {
  test("worker threads", async () => {
    expect(
      await answerOf(`
        const { Worker } = await import("node:worker_threads");
        const worker = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
        const answer = await new Promise((resolve) => worker.on("message", resolve));
        return { answer };`),
    ).toMatchObject({ result: { answer: 42 } });
  });

  test("processes", async () => {
    expect(
      await answerOf(`
        const { execFileSync } = await import("node:child_process");
        return { text: execFileSync(process.execPath, ["-p", "6 * 7"], { encoding: "utf8" }) };`),
    ).toMatchObject({ result: { text: "42\n" } });
  });
});
