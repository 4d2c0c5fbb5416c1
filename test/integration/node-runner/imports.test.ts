/**
 * A module that cannot be imported is an IMPORT_ERROR that names module, cause and place.
 */
import { afterAll, describe, expect, test } from "vitest";
import { removeWorkDirs, runTool, toolsDirectory } from "./run-node-tool.ts";

afterAll(removeWorkDirs);

const typescript = "const a: number = 1;\n";

type FailingCase = [module: string, files: Record<string, string>, reason: string];

const usualFailing: readonly FailingCase[] = [
  ["none.ts", {}, "there is no such file"],
  [
    "package.mjs",
    { "package.mjs": 'import "no-such-package";' },
    "Error: Cannot find package 'no-such-package' imported from package.mjs",
  ],
  [
    "syntax.mjs",
    { "syntax.mjs": "export let a;\nexport function f( { }" },
    "SyntaxError: Unexpected end of input (syntax.mjs, line 2)",
  ],
  [
    "throws.mjs",
    {
      "throws.mjs":
        'import { readFileSync } from "node:fs"; readFileSync(import.meta.dirname + "/absent.json");',
    },
    "Error: ENOENT: no such file or directory, open 'absent.json'",
  ],
  ["exits.mjs", { "exits.mjs": "process.exit(3)" }, "it calls process.exit(3)"],
  ["waits.mjs", { "waits.mjs": "await new Promise(() => {})" }, "its top-level await never ends"],
];
const otherFailing: readonly FailingCase[] = [
  ["a/none.js", { "a/other.js": "" }, "there is no such file"],
  [
    "dir",
    { "dir/index.js": "" },
    "Error: Directory import 'dir' is not supported resolving ES modules imported from main.js\nDid you mean to import \"dir/index.js\"?",
  ],
  ["data.txt", { "data.txt": "" }, 'TypeError: Unknown file extension ".txt" for data.txt'],
  [
    "file.mjs",
    { "file.mjs": 'import "./no/file.js";' },
    "Error: Cannot find module 'no/file.js' imported from file.mjs",
  ],
  [
    "name.mjs",
    { "name.mjs": '\nimport { none } from "node:fs";' },
    "SyntaxError: The requested module 'node:fs' does not provide an export named 'none' (name.mjs, line 2)",
  ],
  [
    "type.mts",
    { "type.mts": 'import { T } from "./t.mts";', "t.mts": "export type T = 1;" },
    "SyntaxError: The requested module './t.mts' does not provide an export named 'T' (type.mts, line 1)",
  ],
  [
    "deep.mjs",
    { "deep.mjs": 'import "./lib/x y.mjs";', "lib/x y.mjs": "\n\n1 +" },
    "SyntaxError: Unexpected end of input (lib/x y.mjs, line 3)",
  ],
  [
    "syntax.cjs",
    { "syntax.cjs": "\nlet let = 1" },
    "SyntaxError: let is disallowed as a lexically bound name (syntax.cjs, line 2)",
  ],
  [
    "syntax.mts",
    { "syntax.mts": `${typescript}function (` },
    "SyntaxError: Expected ident (syntax.mts, line 2)",
  ],
  [
    "enum.mts",
    { "enum.mts": `${typescript}export enum E { A }` },
    "SyntaxError: TypeScript enum is not supported in strip-only mode (enum.mts, line 2)",
  ],
  [
    "decorator.mts",
    { "decorator.mts": `${typescript}class A { @a b() {} }` },
    "SyntaxError: Invalid or unexpected token (decorator.mts, line 2)",
  ],
  ["rejects.mjs", { "rejects.mjs": "await Promise.reject('text')" }, "a string: text"],
  [
    "later.mjs",
    {
      "later.mjs":
        "setTimeout(() => { throw new Error('later') }); await new Promise((r) => setTimeout(r, 60_000))",
    },
    "Error: later",
  ],
  [
    "json.mjs",
    { "json.mjs": "JSON.parse('{')" },
    "SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2)",
  ],
  ["exits.cjs", { "exits.cjs": "process.exit()" }, "it calls process.exit(0)"],
  [
    "uninitialised.mjs",
    {
      "uninitialised.mjs": 'import "./b.mjs"; export let f = 1;',
      "b.mjs": 'import { f } from "./uninitialised.mjs"; f;',
    },
    "ReferenceError: Cannot access 'f' before initialization",
  ],
];
const showFailing = async ([module, files, reason]: FailingCase) => {
  const toolsDir = await toolsDirectory(files);
  const run = await runTool(module, "f", { toolsDir });
  expect(run).toMatchObject({
    exitCode: 0,
    document: {
      error: `Module "${module}" cannot be imported: ${reason}`,
      error_code: "IMPORT_ERROR",
    },
  });
};

test.for(usualFailing)("%s", showFailing);
test.for(otherFailing)("%s", { tags: "full" }, showFailing);

test("stderr has the stack", async () => {
  const toolsDir = await toolsDirectory({ "throws.mjs": "throw new Error('at import')" });
  const { stderr } = await runTool("throws.mjs", "f", { toolsDir });
  expect(stderr).toMatch(/^Error: at import\n {4}at file:.*throws\.mjs:1:7\n/);
});

test("nothing of the tool runs when its module has a syntax error", async () => {
  const toolsDir = await toolsDirectory({
    "tool.mjs": 'import "./first.mjs"; import "./syntax.mjs";',
    "first.mjs": 'console.log("ran")',
    "syntax.mjs": "1 +",
  });
  expect((await runTool("tool.mjs", "f", { toolsDir })).stdout).toBe("");
});

describe("where the runner's package is in no node_modules above the tools", () => {
  const tool = `
    import { ToolError } from "secure-tool-runtime/tool";
    export const f = () => { throw new ToolError("known"); };
  `;

  test("tools find the runner's own", async () => {
    const toolsDir = await toolsDirectory({ "own.mjs": tool });
    const { document } = await runTool("own.mjs", "f", { toolsDir });
    expect(document).toEqual({ error: "known", error_code: "TOOL_ERROR" });
  });

  test("tools in CommonJS find it, too", async () => {
    const toolsDir = await toolsDirectory({
      "own.cjs": `
        const { ToolError } = require("secure-tool-runtime/tool");
        exports.f = () => { throw new ToolError("known"); };
      `,
    });
    const { document } = await runTool("own.cjs", "f", { toolsDir });
    expect(document).toEqual({ error: "known", error_code: "TOOL_ERROR" });
  });

  test("a copy of their own goes first", async () => {
    const toolsDir = await toolsDirectory({
      "own.mjs": 'export { which as f } from "secure-tool-runtime/tool";',
      "node_modules/secure-tool-runtime/package.json": JSON.stringify({
        type: "module",
        exports: { "./tool": "./tool.js" },
      }),
      "node_modules/secure-tool-runtime/tool.js": "export const which = () => ({ copy: 'own' });",
    });
    const { document } = await runTool("own.mjs", "f", { toolsDir });
    expect(document).toMatchObject({ result: { copy: "own" } });
  });

  test("what is not there is still told by its name", async () => {
    const toolsDir = await toolsDirectory({ "own.mjs": 'import "no-such-package";' });
    const { document } = await runTool("own.mjs", "f", { toolsDir });
    expect(document).toMatchObject({
      error: expect.stringContaining("Cannot find package 'no-such-package'") as unknown,
      error_code: "IMPORT_ERROR",
    });
  });
});
