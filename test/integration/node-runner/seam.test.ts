/**
 * The files of the seam themselves: the arguments file, its secrets, and what starting costs.
 */
import { execFile } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import {
  answerOf,
  node,
  removeWorkDirs,
  runBody,
  runTool,
  toolsDirectory,
} from "./run-node-tool.ts";

afterAll(removeWorkDirs);

describe("the arguments file", () => {
  test("is gone before the tool's module is imported; its secrets are only in the context", async () => {
    const toolsDir = await toolsDirectory({
      "f.mjs": `
        import { readdirSync } from "node:fs";
        const files = readdirSync(".");
        export const f = async (_args, ctx) => ({ files, password: await ctx.getConfig("password") });`,
    });
    const run = await runTool("f.mjs", "f", { toolsDir, toolConfig: { password: "hunter2" } });
    expect(run.document).toMatchObject({
      result: { files: ["input", "output", "status.pipe"], password: "hunter2" },
    });
    expect((await readdir(run.workDir)).toSorted()).toEqual([
      "input",
      "output",
      "result.json",
      "status.pipe",
    ]);
    expect(run.stderr).toBe("");
  });

  test("needs no more than module, function, tools_dir, result_file and output_dir", async () => {
    const optional = [
      "tool_config",
      "artifact_paths",
      "artifact_metadata",
      "status_pipe",
      "user_id",
      "session_id",
      "app_name",
      "task_id",
      "max_result_bytes",
    ];
    const members = Object.fromEntries(
      optional.map((name, index) => [name, index % 2 === 0 ? undefined : null]),
    );
    const body =
      "return { user: ctx.userId, config: await ctx.getConfig('x'), artifacts: await ctx.listArtifacts() }";
    expect(await answerOf(body, { members })).toEqual({
      result: { user: "", config: null, artifacts: {} },
      outputs: {},
    });
  });

  test("may have members that this runner does not know", async () => {
    const members = { class_name: null, new: 1 };
    expect(await answerOf("return 1", { members })).toHaveProperty("result");
  });

  type UnusableCase = [what: string, argsText: string, complaint: string];

  const usualUnusable: readonly UnusableCase[] = [
    ["is not JSON", '{"module": secret}', "SyntaxError: the file is not JSON"],
    ["names no module", "{}", 'TypeError: "module" is missing'],
  ];
  const otherUnusable: readonly UnusableCase[] = [
    ["is empty", "", "SyntaxError: the file is not JSON"],
    ["is no object", "[]", "TypeError: the file must hold an object, not an array"],
    ["names no function", '{"module":"m"}', 'TypeError: "function" is missing'],
    ["has the wrong type", '{"module":5}', 'TypeError: "module" must be a string, not a number'],
    [
      "has args that are a list",
      '{"module":"m","function":"f","result_file":"/r","output_dir":"/o","tools_dir":"/t","args":["secret"]}',
      'TypeError: "args" must be an object, not an array',
    ],
  ];
  const showUnusable = async ([, argsText, complaint]: UnusableCase) => {
    const run = await runTool("any.js", "run", { argsText });
    expect(run).toMatchObject({ exitCode: 1, document: undefined, stdout: "" });
    expect(run.stderr).toBe(`tool_runner: the runner arguments cannot be used: ${complaint}\n`);
  };

  test.for(usualUnusable)("that %s cannot be used: status 1 and a line on stderr", showUnusable);
  test.for(otherUnusable)(
    "that %s cannot be used: status 1 and a line on stderr",
    { tags: "full" },
    showUnusable,
  );

  test("that is not there cannot be used", async () => {
    const run = await runBody("return 1", {
      prefix: ["/bin/sh", "-c", 'rm runner_args.json; exec "$@"', "sh"],
    });
    expect(run).toMatchObject({ exitCode: 1, document: undefined });
    expect(run.stderr).toMatch(/^tool_runner: .*Error: ENOENT: .*runner_args.json'\n$/);
  });

  test("must be given", async () => {
    const run = await runBody("return 1", {
      prefix: ["/bin/sh", "-c", 'exec "$1" "$2" "$3"', "sh"],
    });
    expect(run).toMatchObject({
      exitCode: 1,
      stderr:
        "tool_runner: usage: main.js RUNNER_ARGS_FILE | main.js --warm MODULE_FILE CACHE_DIR" +
        " | main.js --park MODULE TOOLS_DIR RUNNER_ARGS_FILE" +
        " | main.js --template MODULE TOOLS_DIR RUNNER_ARGS_FILE\n",
    });
  });
});

test("a tool reads nothing from stdin", async () => {
  const body = "const chunks = await process.stdin.toArray(); return { chunks }";
  expect(await answerOf(body)).toMatchObject({ result: { chunks: [] } });
});

test("starting loads nothing of Node that an empty module does not load, too", async () => {
  const directory = await toolsDirectory({
    "tools/list.mjs": "export const f = () => ({ loaded: process.moduleLoadList });",
    "tools/empty.mjs": "import.meta; process.stdout.write(JSON.stringify(process.moduleLoadList));",
    "node_modules/secure-tool-runtime/package.json": "{}",
  });
  const toolsDir = join(directory, "tools");
  const run = await runTool("list.mjs", "f", { toolsDir });
  const { loaded } = run.document?.["result"] as { loaded: readonly string[] };
  await writeFile(join(toolsDir, "loader.mjs"), 'await import("./empty.mjs");');
  const { stdout } = await promisify(execFile)(node, [join(toolsDir, "loader.mjs")]);
  const empty = new Set(JSON.parse(stdout) as readonly string[]);
  expect(loaded.filter((name) => !empty.has(name))).toEqual([]);
});
