/**
 * Tools that are classes.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  removeWorkDirs,
  type RunOptions,
  type ToolRun,
  runTool,
  statuses,
} from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

function runClass(name: string, options: RunOptions = {}): Promise<ToolRun> {
  const members = { function: undefined, class_name: name, ...options.members };
  return runTool("class_tools", name, { ...options, members });
}

async function call(name: string, options: RunOptions = {}): Promise<unknown> {
  const run = await runClass(name, options);
  expect(run.exitCode).toBe(0);
  return run.document;
}

test("an instance is made with the configuration, and its method gets the arguments", async () => {
  const toolConfig = { prefix: "Bonjour" };
  expect(await call("Greeting", { args: { name: "Ann" }, toolConfig })).toEqual({
    result: { greeting: "Bonjour, Ann!", tool_context: null, tool_config: toolConfig },
    outputs: {},
  });
});

test("the class goes before a function that is named as well", async () => {
  expect(await call("Greeting", { members: { function: "offered" } })).toMatchObject({
    result: { greeting: "Hello, World!" },
  });
});

test("a class needs no base class, and its method need not be async", async () => {
  expect(await call("WithoutBase", { args: { a: 1 }, toolConfig: { b: 2 } })).toEqual({
    result: { args: { a: 1 }, tool_config: { b: 2 } },
    outputs: {},
  });
});

describe("the context and the artifacts that a class names", () => {
  const report = { filename: "q3.csv", content: "a,b" };
  const files = {
    "files[0]": { filename: "one.txt", content: "1" },
    "files[1]": { filename: "two.txt", content: "2" },
  };
  const absent = 'Everything() takes an artifact as "report", and the call brings none as "report"';

  test("are among its arguments, and its result is taken apart", async () => {
    const run = await runClass("Everything", {
      args: { report: "q3.csv", files: ["one.txt", "two.txt"] },
      artifacts: { report, ...files },
    });
    expect(run.document).toEqual({
      result: {
        status: "success",
        message: "q3.csv",
        data: { report: "a,b", is_artifact: true, loaded: "a,b", extra: null, files: ["1", "2"] },
        data_objects: [],
        error_code: null,
      },
      outputs: {},
    });
    expect(statuses(run)).toEqual(["running"]);
    expect(await readFile(join(run.workDir, "output/out.txt"), "utf8")).toBe("out");
  });

  test("a list that the call leaves out is empty, an optional one keeps its argument", async () => {
    const args = { report: "q3.csv", extra: "x.txt" };
    expect(await call("Everything", { args, artifacts: { report } })).toMatchObject({
      result: { data: { extra: "x.txt", files: [] } },
    });
  });

  test("a list is one of one where the call gives a single artifact", async () => {
    const args = { report: "q3.csv", files: "one.txt" };
    const artifacts = { report, files: files["files[0]"] };
    expect(await call("Everything", { args, artifacts })).toMatchObject({
      result: { data: { files: ["1"] } },
    });
  });

  test("a list that is only named is an error", async () => {
    const args = { report: "q3.csv", files: "one.txt" };
    expect(await call("Everything", { args, artifacts: { report } })).toEqual({
      error: 'Everything() takes an artifact as "files", and the call brings none as "files"',
      error_code: "EXECUTION_ERROR",
    });
  });

  test("a required one that the call does not bring is an error", async () => {
    expect(await call("Everything", { args: { report: "q3.csv" } })).toEqual({
      error: absent,
      error_code: "EXECUTION_ERROR",
    });
  });

  test("by artifact_args alone", async () => {
    expect(await call("NamedArtifacts", { artifacts: { report } })).toMatchObject({
      result: { report: "a,b" },
    });
  });
});

describe("a configuration model", () => {
  test("validates the configuration; the tool gets the model", async () => {
    expect(await call("Configured", { toolConfig: { api_key: "k" } })).toEqual({
      result: { model: "Model", api_key: "k", limit: 5 },
      outputs: {},
    });
    expect(await call("ConfiguredByKeyword", { toolConfig: { api_key: "k" } })).toMatchObject({
      result: { api_key: "k" },
    });
  });

  test("that refuses is an error that says why and repeats no value", async () => {
    const run = await runClass("Configured", { toolConfig: { apikey: "hunter2" } });
    expect(run.document).toEqual({
      error:
        "The tool's configuration is not a Model: api_key: Field required; limits.0: Input should be a valid number",
      error_code: "EXECUTION_ERROR",
    });
    expect(run.stderr).not.toContain("hunter2");
  });

  test("that cannot be made is an error that says why", async () => {
    expect(await call("ConfiguredByKeyword")).toEqual({
      error: expect.stringMatching(
        /^The tool's configuration is not a ByKeyword: TypeError: .*missing 1 required keyword-only argument: 'api_key'$/,
      ) as string,
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("a class that cannot be called is an error", () => {
  test.for<[name: string, error: string]>([
    ["NoSuchClass", 'Module "class_tools" has no class "NoSuchClass"'],
    ["instance", 'Module "class_tools" has no class "instance"'],
    ["offered", 'Module "class_tools" has no class "offered"'],
    ["Model", 'Class "Model" of module "class_tools" has no method "_run_async_impl"'],
  ])("%s is TOOL_NOT_FOUND", async ([name, error]) => {
    expect(await call(name)).toEqual({ error, error_code: "TOOL_NOT_FOUND" });
  });

  test.for<[name: string, error: string]>([
    ["Failing", "Tool raised ValueError: no greeting today"],
    ["FailsToStart", "Tool raised RuntimeError: no database"],
    ["TakesNothing", "Tool raised TypeError: TakesNothing() takes no arguments"],
  ])("%s is EXECUTION_ERROR", async ([name, error]) => {
    const run = await runClass(name);
    expect(run.document).toEqual({ error, error_code: "EXECUTION_ERROR" });
    expect(run.stderr).toContain(error.replace("Tool raised ", ""));
  });

  test("a base class whose method nobody wrote says so", async () => {
    expect(await call("DynamicTool")).toEqual({
      error: "Tool raised NotImplementedError: DynamicTool has no _run_async_impl of its own",
      error_code: "EXECUTION_ERROR",
    });
  });
});
