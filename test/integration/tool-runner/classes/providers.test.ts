/**
 * Classes that provide several tools.
 */
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  removeWorkDirs,
  type RunOptions,
  type ToolRun,
  runTool,
  statuses,
} from "../run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

/** Runs one tool of a class of `class_tools.py`. */
function runProvided(provider: string, name: string, options: RunOptions = {}): Promise<ToolRun> {
  const members = { function: undefined, class_name: provider, tool_name: name };
  const toolConfig = { api_key: "k" };
  return runTool("class_tools", provider, { toolConfig, ...options, members });
}

const file = { filename: "f.txt", content: "inside" };

describe("a tool of a provider", () => {
  test("is a registered function, with an instance of the class as self", async () => {
    const { document } = await runProvided("Several", "double", { args: { city: "Oslo" } });
    expect(document).toMatchObject({ result: { city: "Oslo", opened: true, keys: ["k", "k"] } });
  });

  test("belongs to a subclass as well, which then is the instance", async () => {
    const { document } = await runProvided("Derived", "double", { args: { city: "Oslo" } });
    expect(document).toMatchObject({ result: { opened: "derived" } });
  });

  test("may be a function without self, and takes artifacts as every function does", async () => {
    const { document } = await runProvided("Several", "plain", {
      args: { text: "t", report: "f.txt" },
      artifacts: { report: file },
    });
    expect(document).toMatchObject({ result: { text: "t", report: "inside" } });
  });

  test("is one that the class makes for its configuration", async () => {
    const run = await runProvided("Several", "times_10", {
      args: { number: 4, file: "f.txt" },
      artifacts: { file },
    });
    expect(run.document).toMatchObject({ result: { scaled: 40, file: "inside", key: "k" } });
    expect(statuses(run)).toEqual(["scaling"]);
  });

  test("that it does not have is an error, which names those that it has", async () => {
    const { document } = await runProvided("Several", "times_3");
    expect(document).toEqual({
      error:
        'Class "Several" provides no tool "times_3"; its tools: double, plain, times_10, times_2',
      error_code: "TOOL_NOT_FOUND",
    });
  });

  test.each(["double", "times_2"])("gets no wrong configuration: %s", async (name) => {
    const { document } = await runProvided("Several", name, { toolConfig: {}, args: { city: "" } });
    expect(document).toMatchObject({
      error: expect.stringMatching(/configuration is not a Model: api_key: Field required/),
    });
  });

  test("is described among the others where the call names none", async () => {
    const members = { function: undefined, class_name: "Several", describe: true };
    const options = { members, toolConfig: { api_key: "k" } };
    const { document } = await runTool("class_tools", "Several", options);
    const { tools } = (document as { result: { tools: object } }).result;
    expect(Object.keys(tools).sort()).toEqual(["double", "plain", "times_10", "times_2"]);
    expect(tools).toMatchObject({
      double: { parameters: { required: ["city"] } },
      plain: { artifact_parameters: { report: { is_list: false, is_optional: true } } },
      times_10: { artifact_parameters: { file: { is_list: false } } },
    });
  });

  test("has to be named", async () => {
    const members = { function: undefined, class_name: "Several" };
    expect((await runTool("class_tools", "Several", { members })).document).toEqual({
      error: 'Class "Several" provides several tools; name them by "tools" in the manifest',
      error_code: "TOOL_NOT_FOUND",
    });
  });
});
