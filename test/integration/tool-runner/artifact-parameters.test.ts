/**
 * Parameters that take artifacts as objects.
 */
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, removeWorkDirs, type RunOptions, runTool } from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

const report = { filename: "q3.csv", content: "a,b €" };
const one = { filename: "one.txt", content: "1" };
const two = { filename: "two.txt", content: "2" };

async function call(name: string, options: RunOptions, module = "portable_tools") {
  const run = await runTool(module, name, options);
  expect(run.exitCode).toBe(0);
  return run.document;
}

function object({ filename, content }: { filename: string; content: string }): object {
  return { filename, text: content, version: 0, mime_type: "text/plain", metadata: {} };
}

describe("an artifact reaches its parameter as an object", () => {
  const args = { input_file: "q3.csv" };
  const artifacts = { input_file: report };

  test.for<[name: string, more: object]>([
    ["one", { bytes: "a,b €" }],
    ["perhaps", {}],
    ["perhaps_required", {}],
    ["artifact_or_name", {}],
    ["artifact_and_context", { ctx: "ToolContext" }],
  ])("%s", async ([name, more]) => {
    expect(await call(name, { args, artifacts })).toEqual({
      result: { input_file: object(report), ...more },
      outputs: {},
    });
  });

  test("also one that is not in the arguments", async () => {
    expect(await call("one", { artifacts })).toMatchObject({
      result: { input_file: object(report) },
    });
  });

  test.for(["one", "perhaps", "perhaps_in_words"])(
    "also where the annotation is a string: %s",
    async (name) => {
      expect(await call(name, { args, artifacts }, "portable_string_tools")).toEqual({
        result: { input_file: ["q3.csv", "a,b €"] },
        outputs: {},
      });
    },
  );
});

describe("a list parameter gets each of its artifacts", () => {
  const args = { files: ["one.txt", "two.txt"] };
  const artifacts = { "files[0]": one, "files[1]": two };

  test.for(["several", "several_or_none"])("%s", async (name) => {
    expect(await call(name, { args, artifacts })).toEqual({
      result: { files: [object(one), object(two)] },
      outputs: {},
    });
  });

  test.for(["several", "quoted"])("also where the annotation is a string: %s", async (name) => {
    expect(await call(name, { args, artifacts }, "portable_string_tools")).toEqual({
      result: {
        files: [
          ["one.txt", "1"],
          ["two.txt", "2"],
        ],
      },
      outputs: {},
    });
  });

  test.for<[name: string, files: string | string[] | undefined]>([
    ["several", "one.txt"],
    ["several", ["one.txt"]],
    ["several", undefined],
    ["several_or_none", "one.txt"],
  ])("of one where the call gives a single artifact: %s(%j)", async ([name, files]) => {
    expect(await call(name, { args: { files }, artifacts: { files: one } })).toEqual({
      result: { files: [object(one)] },
      outputs: {},
    });
  });

  test("an empty list stays one", async () => {
    expect(await call("several", { args: { files: [] } })).toEqual({
      result: { files: [] },
      outputs: {},
    });
  });
});

describe("without an artifact", () => {
  test.for<[name: string, args: object, given: object]>([
    ["perhaps", {}, { input_file: null }],
    ["perhaps", { input_file: null }, { input_file: null }],
    ["perhaps", { input_file: "q3.csv" }, { input_file: "q3.csv" }],
    ["perhaps_required", { input_file: "q3.csv" }, { input_file: "q3.csv" }],
    ["artifact_or_name", { input_file: "q3.csv" }, { input_file: "q3.csv" }],
    ["several_or_none", {}, { files: null }],
    ["several_or_none", { files: null }, { files: null }],
    ["name_or_several", { files: "a.txt" }, { files: "a.txt" }],
  ])("%s(%j) keeps what it has", async ([name, args, given]) => {
    expect(await call(name, { args })).toEqual({ result: given, outputs: {} });
  });

  test.for<[name: string, args: object, error: string]>([
    ["one", {}, 'one() is missing the argument "input_file"'],
    [
      "one",
      { input_file: "q3.csv" },
      'one() takes an artifact as "input_file", and the call brings none as "input_file"',
    ],
    ["perhaps_required", {}, 'perhaps_required() is missing the argument "input_file"'],
    ["several", {}, 'several() is missing the argument "files"'],
    [
      "several",
      { files: ["a.txt"] },
      'several() takes an artifact as "files", and the call brings none as "files[0]"',
    ],
    [
      "several",
      { files: "a.txt" },
      'several() takes an artifact as "files", and the call brings none as "files"',
    ],
  ])("%s(%j) is an error", async ([name, args, error]) => {
    expect(await call(name, { args })).toEqual({ error, error_code: "EXECUTION_ERROR" });
  });

  test.for([
    ["several", "files[0]"],
    ["several_or_none", "files[0]"],
    ["several", "files"],
  ] as const)("%s never gets a part of a list, such as %s", async ([name, entry]) => {
    const args = { files: ["one.txt", "two.txt"] };
    expect(await call(name, { args, artifacts: { [entry]: one } })).toEqual({
      error: `${name}() takes an artifact as "files", and the call brings none as "files[1]"`,
      error_code: "EXECUTION_ERROR",
    });
  });
});

test("an artifact whose file is gone is an error that names the parameter", async () => {
  const members = { artifact_paths: { input_file: "/nowhere/q3.csv" } };
  expect(await call("one", { members })).toEqual({
    error: 'The artifact "input_file" cannot be read: No such file or directory',
    error_code: "EXECUTION_ERROR",
  });
});

test("what only has the word in its annotation gets its argument", async () => {
  const parts = { a: "q3.csv" };
  expect(await call("artifacts_by_key", { args: { parts } })).toMatchObject({ result: { parts } });
  expect(await call("named_like_artifact", { args: { kind: "Artifact" } })).toMatchObject({
    result: { kind: "Artifact", other: "Artifact" },
  });
});
