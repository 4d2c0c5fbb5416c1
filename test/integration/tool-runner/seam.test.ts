/**
 * The files of the seam themselves: the arguments file, its secrets, and what else the tool can see
 * of the runner.
 */
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { fixtures, removeWorkDirs, runTool, runnerEntry } from "./run-tool.ts";

afterAll(removeWorkDirs);

describe("the arguments file", () => {
  test(
    "is gone before the tool's module is imported; its secrets are only in the context",
    { tags: "promise-S25" },
    async () => {
      const run = await runTool("context_tools", "arguments_file", {
        args: { path: "runner_args.json" },
        toolConfig: { password: "hunter2" },
      });
      expect(run.document).toMatchObject({
        result: { exists: false, argv: [], environment: [], config: "hunter2" },
      });
      expect((await readdir(run.workDir)).toSorted()).toEqual([
        "input",
        "output",
        "result.json",
        "status.pipe",
      ]);
      expect(run.stderr).toBe("");
    },
  );

  test("needs no more than module, function or class_name, result_file and output_dir", async () => {
    const absent = Object.fromEntries(
      [
        "args",
        "tool_config",
        "artifact_paths",
        "artifact_metadata",
        "status_pipe",
        "user_id",
        "session_id",
        "app_name",
        "task_id",
        "max_result_bytes",
      ].map((name, index) => [name, index % 2 === 0 ? undefined : null]),
    );
    const run = await runTool("context_tools", "whoami", { members: absent });
    expect(run.document).toEqual({
      result: { user_id: "", session_id: "", app_name: "", task_id: "" },
      outputs: {},
    });
  });

  test("may have members that this runner does not know", async () => {
    const run = await runTool("result_tools", "text", { members: { class_name: null, new: 1 } });
    expect(run.document).toHaveProperty("result");
  });

  type UnusableCase = [what: string, argsText: string, complaint: string];

  const usualUnusable: readonly UnusableCase[] = [
    [
      "is not JSON",
      '{"module": secret}',
      "JSONDecodeError: Expecting value: line 1 column 12 (char 11)",
    ],
    ["names no module", "{}", 'ValueError: "module" is missing'],
  ];
  const otherUnusable: readonly UnusableCase[] = [
    ["is empty", "", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"],
    ["goes on", "{} secret", "JSONDecodeError: Extra data: line 1 column 4 (char 3)"],
    ["is no object", "[]", "ValueError: the file must hold an object, not an array"],
    ["names no result file", '{"module":"m"}', 'ValueError: "result_file" is missing'],
    [
      "names neither function nor class",
      '{"module":"m","result_file":"/r","output_dir":"/o","class_name":null}',
      'ValueError: "function" and "class_name" are missing',
    ],
    ["has the wrong type", '{"module":5}', 'ValueError: "module" must be a string, not a number'],
    [
      "has args that are a list",
      '{"module":"m","function":"f","args":["secret"]}',
      'ValueError: "args" must be an object, not an array',
    ],
  ];
  const showUnusable = async ([, argsText, complaint]: UnusableCase) => {
    const run = await runTool("context_tools", "whoami", { argsText });
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
    const run = await runTool("context_tools", "whoami", {
      prefix: ["/bin/sh", "-c", 'rm runner_args.json; exec "$@"', "sh"],
    });
    expect(run).toMatchObject({ exitCode: 1, document: undefined });
    expect(run.stderr).toMatch(/^tool_runner: .*FileNotFoundError: .*runner_args.json'\n$/);
  });

  test("must be given", async () => {
    const run = await runTool("context_tools", "whoami", {
      prefix: ["/bin/sh", "-c", 'exec "$1" "$2" "$3" "$4"', "sh"],
    });
    expect(run).toMatchObject({
      exitCode: 1,
      stderr: "tool_runner: usage: tool_runner RUNNER_ARGS_FILE\n",
    });
  });
});

test("a tool reads nothing from stdin", async () => {
  expect((await runTool("context_tools", "is_stdin_empty")).document).toMatchObject({
    result: { stdin: "" },
  });
});

describe("the runner's modules and the tool's do not meet", () => {
  const names = ["binding", "context", "json_codec", "protocol", "runner", "tool_runner"];

  test.for([
    ["as a file", runnerEntry],
    ["as a directory", dirname(runnerEntry)],
  ] as const)("when the runner is started %s", async ([, entry]) => {
    const run = await runTool("shadowing_tool", "names", {
      toolsDir: join(fixtures, "shadowing"),
      entry,
    });
    expect(run.document).toMatchObject({
      result: { names: names.map((name) => `the tool's own ${name}`) },
    });
  });
});

test("starting imports only what the runner consists of: every module counts in a cold start", async () => {
  const run = await runTool("light_tool", "nothing", {
    prefix: ["/bin/sh", "-c", 'shift 3; exec /usr/bin/python3 -I -B -X importtime "$@"', "sh"],
  });
  expect(run.document).toHaveProperty("result");
  const imported = run.stderr
    .trimEnd()
    .split("\n")
    .map((line) => line.split("|").at(-1)?.trim());
  expect(imported.slice(imported.indexOf("site") + 1)).toEqual([
    "_json",
    "secure_tool_runtime.status_pipe",
    "secure_tool_runtime.context",
    "secure_tool_runtime",
    "errno",
    "atexit",
    "__main__.exit",
    "__main__.errors",
    "__main__.json_codec",
    "__main__.protocol",
    "__main__.signatures",
    "__main__.binding",
    "__main__.runner",
    "light_tool",
  ]);
});
