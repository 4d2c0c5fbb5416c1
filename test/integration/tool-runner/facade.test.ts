/**
 * The context of tools that ask for it by annotation: artifacts by filename, with await.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, removeWorkDirs, type RunOptions, runTool, statuses } from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

const report = { filename: "q3.csv", content: "a,b €" };
const artifacts = { report, other: { filename: "other.txt", content: "o" } };

async function use(args: object, options: RunOptions = {}): Promise<unknown> {
  const run = await runTool("portable_tools", "use_facade", { args, artifacts, ...options });
  return run.document?.["result"];
}

describe("input artifacts", () => {
  const listed = ["q3.csv", "other.txt"];
  const metadata = { mime_type: "text/plain", size_bytes: 7, version: 0 };

  test("are loaded, described and listed by filename", async () => {
    expect(await use({ filename: "q3.csv" })).toEqual({
      content: "a,b €",
      text: "a,b €",
      metadata: { filename: "q3.csv", ...metadata },
      exists: true,
      listed,
    });
  });

  test("are loaded by the name of their parameter, too", async () => {
    expect(await use({ filename: "report" })).toEqual({
      content: "a,b €",
      text: "a,b €",
      metadata: { filename: "q3.csv", ...metadata },
      exists: false,
      listed,
    });
  });

  test.for([0, "0", "latest", null])("may be asked for in version %j", async (version) => {
    expect(await use({ filename: "q3.csv", version })).toMatchObject({ text: "a,b €" });
  });

  test("that the call does not bring are not found", async () => {
    const error = "FileNotFoundError: artifact 'absent' is not among the inputs of this call";
    expect(await use({ filename: "absent" })).toEqual({
      content: error,
      text: error,
      metadata: error,
      exists: false,
      listed,
    });
  });

  test("that the call brings in another version are not found", async () => {
    expect(await use({ filename: "q3.csv", version: 3 })).toMatchObject({
      content:
        "FileNotFoundError: artifact 'q3.csv' is not among the inputs of this call in version 3, only in 0",
    });
  });

  test("of one name are told apart by their versions; the latest is the default", async () => {
    const run = (version?: number) =>
      runTool("portable_tools", "use_facade", {
        args: { filename: "x.txt", ...(version === undefined ? {} : { version }) },
        artifacts: {
          new: { filename: "new", content: "new" },
          old: { filename: "old", content: "old" },
        },
        rewrite: (members) => {
          const metadata = members["artifact_metadata"] as Record<string, object>;
          Object.assign(metadata["new"]!, { filename: "x.txt", version: 7 });
          Object.assign(metadata["old"]!, { filename: "x.txt", version: 2 });
        },
      });
    expect((await run()).document).toMatchObject({ result: { text: "new", listed: ["x.txt"] } });
    expect((await run(2)).document).toMatchObject({ result: { text: "old" } });
    expect((await run(7)).document).toMatchObject({ result: { text: "new" } });
  });

  test("without metadata go by the name of their file, in whatever version", async () => {
    const members = { artifact_metadata: {} };
    expect(await use({ filename: "q3.csv", version: 5 }, { members })).toMatchObject({
      text: "a,b €",
      metadata: { filename: "q3.csv", mime_type: "application/octet-stream", version: 0 },
    });
  });
});

test("the rest is there, and does not have to be awaited", async () => {
  const run = await runTool("portable_tools", "facade_members", {
    artifacts: { report },
    toolConfig: { key: "value", number: 5 },
  });
  expect(run.document).toEqual({
    result: {
      by_param: "a,b €",
      no_param: null,
      caller: ["user-42", "web-1", "AgentA", "task-7"],
      profile: {},
      state: { seen: true },
      a2a_context: null,
      raw_tool_context: null,
      texts: ["value", "none"],
      config: ["value", 7],
      status: true,
      signal: false,
      saved: ["a.dat", "b.txt"],
      outputs: ["a.dat", "b.txt"],
    },
    outputs: { "a.dat": { mime_type: "text/x-a" }, "b.txt": { description: "the b" } },
  });
  expect(statuses(run)).toEqual(["working"]);
  expect(await readFile(join(run.workDir, "output/b.txt"), "utf8")).toBe("b");
});

test("a tool that asks for a language model is told that there is none", async () => {
  expect((await runTool("portable_tools", "ask_model")).document).toEqual({
    error:
      "Tool raised IPCError: this runtime has no language model for its tools; call_llm cannot be answered",
    error_code: "EXECUTION_ERROR",
  });
});

test("a function that cannot await has what the design document gives the context of its sandbox", async () => {
  const run = await runTool("portable_tools", "design_document", {
    args: { input_file: "q3.csv" },
    artifacts: { input_file: report },
  });
  expect(run.document).toEqual({
    result: { bytes: "a,b €", text: "a,b €", inputs: ["input_file"], argument: "q3.csv" },
    outputs: {},
  });
});
