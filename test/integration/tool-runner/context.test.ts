/**
 * The context a tool is handed: who calls, configuration, artifacts in and out.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, removeWorkDirs, type RunOptions, type ToolRun, runTool } from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

function use(name: string, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("context_tools", name, options);
}

async function resultOf(name: string, options: RunOptions = {}): Promise<unknown> {
  const run = await use(name, options);
  expect(run.document).toHaveProperty("result");
  return run.document?.["result"];
}

test("a tool can ask who calls", async () => {
  expect(await resultOf("whoami")).toEqual({
    user_id: "user-42",
    session_id: "web-1",
    app_name: "AgentA",
    task_id: "task-7",
  });
});

test("a tool can ask for its configuration", async () => {
  expect(await resultOf("config", { toolConfig: { key: { deep: [1] } } })).toEqual({
    known: { deep: [1] },
    absent: null,
    default: 7,
  });
});

describe("input artifacts", () => {
  const artifacts = {
    report: { filename: "q3.csv", content: "a,b" },
    "files[0]": { filename: "one.txt", content: "1" },
    "files[1]": { filename: "two.txt", content: "2" },
  };

  test("are loaded by parameter, by list parameter and by filename", async () => {
    const names = ["report", "files[0]", "files[1]", "files", "q3.csv", "two.txt", "absent"];
    expect(await resultOf("load", { args: { names }, artifacts })).toEqual({
      report: "a,b",
      "files[0]": "1",
      "files[1]": "2",
      files: null,
      "q3.csv": "a,b",
      "two.txt": "2",
      absent: null,
    });
  });

  test("are loaded by the name of their file where nothing else is known of them", async () => {
    const members = { artifact_metadata: {} };
    expect(await resultOf("load", { args: { names: ["q3.csv"] }, artifacts, members })).toEqual({
      "q3.csv": "a,b",
    });
  });

  test("whose file is gone are absent", async () => {
    const members = { artifact_paths: { report: "/nowhere/q3.csv" } };
    expect(await resultOf("load", { args: { names: ["report"] }, members })).toEqual({
      report: null,
    });
  });

  test("are listed with their paths, in a copy", async () => {
    expect(await resultOf("inputs", { artifacts })).toEqual({
      report: "q3.csv",
      "files[0]": "one.txt",
      "files[1]": "two.txt",
    });
  });

  test("keep their filename in the arguments", async () => {
    const args = { report: "q3.csv" };
    expect(await resultOf("argument_of_artifact", { args, artifacts })).toEqual({
      argument: "q3.csv",
    });
  });

  test("are decoded as the tool says", async () => {
    const latin = { note: { filename: "note.txt", content: Buffer.from("é", "latin1") } };
    const args = { name: "note", encoding: "latin-1" };
    expect(await resultOf("load_text", { args, artifacts: latin })).toEqual({ text: "é" });
    expect(await resultOf("load_text", { args: { name: "absent" } })).toEqual({ text: null });
    expect((await use("load_text", { args: { name: "note" }, artifacts: latin })).document).toEqual(
      {
        error: expect.stringMatching(/^Tool raised UnicodeDecodeError: /) as string,
        error_code: "EXECUTION_ERROR",
      },
    );
  });
});

describe("output artifacts", () => {
  test("are files in output/, with what the tool said of them in the result", async () => {
    const run = await use("save_all");
    const names = [
      "described.txt",
      "latin.txt",
      "notes",
      "page.html",
      "plain.bin",
      "replaced.txt",
      "said.dat",
    ];
    expect(run.document).toMatchObject({ result: { listed: names } });
    expect(run.document?.["outputs"]).toEqual({
      "said.dat": { mime_type: "text/csv", description: "a table" },
      "described.txt": { description: "only described" },
      notes: { mime_type: "text/plain" },
      "page.html": { mime_type: "text/html" },
    });
    const content = (name: string) => readFile(join(run.workDir, "output", name));
    expect(await content("plain.bin")).toEqual(Buffer.from([0, 1]));
    expect(await content("latin.txt")).toEqual(Buffer.from("é", "latin1"));
    expect(await content("replaced.txt")).toEqual(Buffer.from("second"));
    expect(run.document).toMatchObject({
      result: { paths: expect.arrayContaining([join(run.workDir, "output/notes")]) as string[] },
    });
  });

  test("must be bytes", async () => {
    expect((await use("save_text_as_bytes")).document).toEqual({
      error: "Tool raised TypeError: content must be bytes, not str; save_artifact_text takes text",
      error_code: "EXECUTION_ERROR",
    });
  });

  test.for<[filename: unknown, refusal: string]>([
    ["", "ValueError: artifact filename '' is empty"],
    [".", "ValueError: artifact filename '.' names a directory"],
    ["..", "ValueError: artifact filename '..' names a directory"],
    [
      "../x",
      "ValueError: artifact filename '../x' contains a path separator; artifacts have plain names",
    ],
    [
      "/etc/x",
      "ValueError: artifact filename '/etc/x' contains a path separator; artifacts have plain names",
    ],
    [
      "a\\b",
      "ValueError: artifact filename 'a\\\\b' contains a path separator; artifacts have plain names",
    ],
    ["a\0b", "ValueError: artifact filename 'a\\x00b' contains a control character"],
    ["a\nb", "ValueError: artifact filename 'a\\nb' contains a control character"],
    ["a\u0085b", "ValueError: artifact filename 'a\\x85b' contains a control character"],
    [
      "a\ud800",
      "ValueError: artifact filename 'a\\ud800' contains a lone surrogate, which no file name can hold",
    ],
    [
      "é".repeat(128),
      `ValueError: artifact filename '${"é".repeat(80)}' is 256 bytes long; at most 255 are possible`,
    ],
    [7, "TypeError: an artifact's filename must be str, not int"],
  ])("named %j are refused", async ([filename, refusal]) => {
    const run = await use("save", { args: { filename } });
    expect(run.document).toEqual({ result: { refused: refusal }, outputs: {} });
  });

  describe("whatever the name", { tags: "full" }, () => {
    property.prop([fc.string({ unit: anyCharacter, maxLength: 120 })], { numRuns: 25 })(
      "under any name are saved under exactly this name or refused",
      async (filename) => {
        const run = await use("save", { args: { filename, content: "kept" } });
        const result = run.document?.["result"] as { saved?: string; refused?: string };
        if (result.refused !== undefined) return;
        expect(result.saved).toBe(filename);
        expect(await readFile(join(run.workDir, "output", filename), "utf8")).toBe("kept");
      },
    );
  });
});
