/**
 * Results with files in them: a ToolResult and its data objects.
 */
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  removeWorkDirs,
  type RunOptions,
  type ToolRun,
  runTool,
} from "../run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

function call(name: string, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("portable_tools", name, options);
}

const blank = { message: null, data: null, data_objects: [], error_code: null };

describe("a result is answered by its members", () => {
  test.for<[name: string, args: object, result: object]>([
    ["echo", { message: "hi" }, { status: "success", message: "Echoed: hi" }],
    [
      "failed",
      {},
      {
        status: "error",
        message: "no such file",
        data: { name: "x" },
        error_code: "FILE_NOT_FOUND",
      },
    ],
    ["partly", {}, { status: "partial", message: "half", error_code: "HALF" }],
  ])("%s(%j)", async ([name, args, result]) => {
    expect((await call(name, { args })).document).toEqual({
      result: { ...blank, ...result },
      outputs: {},
    });
  });

  test.for(["as_dataclass", "as_model", "as_plain_object"])(
    "whatever its class: %s",
    async (name) => {
      const run = await runTool("own_result_tools", name);
      expect(run.document).toEqual({
        result: {
          ...blank,
          status: "success",
          message: "own",
          data_objects: [{ name: "inline.txt", content: "i", disposition: "inline" }],
        },
        outputs: { "out.dat": { mime_type: "application/x-own", description: "own" } },
      });
      expect(await readFile(join(run.workDir, "output/out.dat"), "utf8")).toBe("o");
    },
  );
});

describe("data objects", () => {
  test("are saved or stay, as their disposition says", async () => {
    const run = await call("every_disposition");
    const inline = { description: null, preview: null, metadata: null, tags: null };
    expect(run.document).toEqual({
      result: {
        ...blank,
        status: "success",
        message: "All",
        data: { count: 7 },
        data_objects: [
          {
            name: "inline.txt",
            content: "here",
            mime_type: "text/plain",
            disposition: "inline",
            ...inline,
            metadata: { a: 1 },
          },
          {
            name: "previewed.csv",
            content: "a,b",
            mime_type: "text/csv",
            disposition: "inline",
            ...inline,
            preview: "a,b",
            description: "a table",
          },
        ],
      },
      outputs: {
        "said.dat": { mime_type: "application/x-said", description: "said" },
        "previewed.csv": { mime_type: "text/csv", description: "a table" },
        text: { mime_type: "text/plain" },
        "plain.html": { mime_type: "text/plain" },
      },
    });
    const output = join(run.workDir, "output");
    const names = (await readdir(output)).toSorted();
    const files = await Promise.all(names.map((name) => readFile(join(output, name), "latin1")));
    expect(Object.fromEntries(names.map((name, index) => [name, files[index]]))).toEqual({
      "said.dat": "\0\u0001",
      "auto.csv": "a,b",
      text: Buffer.from("é").toString("latin1"),
      bytes: "raw",
      "plain.html": "<p>",
      "previewed.csv": "a,b\n1,2",
      "earlier.txt": "later",
    });
  });

  test("have the beginning of their text for a preview, bytes have none", async () => {
    expect((await call("previews")).document).toMatchObject({
      result: {
        data_objects: [
          { name: "long.txt", content: `${"x".repeat(500)}...`, disposition: "inline" },
          { name: "short.txt", content: "y".repeat(500), disposition: "inline" },
        ],
      },
      outputs: {},
    });
  });

  const kept = (name: string, reason: string) =>
    `Data object "${name}" of the tool's result cannot be kept: ${reason}`;

  test.for<[what: string, objects: readonly object[], error: string]>([
    [
      "two of one name",
      [
        { name: "a.txt", content: "1" },
        { name: "a.txt", content: "2" },
      ],
      kept("a.txt", "the result has another one of this name"),
    ],
    [
      "a name that leaves the directory",
      [{ name: "../a.txt", content: "1" }],
      kept(
        "../a.txt",
        "artifact filename '../a.txt' contains a path separator; artifacts have plain names",
      ),
    ],
    [
      "no name",
      [{ name: null, content: "1" }],
      kept("None", "an artifact's filename must be str, not NoneType"),
    ],
    [
      "an unknown disposition",
      [{ name: "a.txt", content: "1", disposition: "somewhere" }],
      kept("a.txt", "its disposition is none of artifact, auto, artifact_with_preview, inline"),
    ],
    [
      "content that is neither text nor bytes",
      [{ name: "a.txt", content: { a: 1 } }],
      kept("a.txt", "its content is dict, not str or bytes"),
    ],
    [
      "content that UTF-8 does not have",
      [{ name: "a.txt", content: "a\ud800" }],
      kept(
        "a.txt",
        "'utf-8' codec can't encode character '\\ud800' in position 1: surrogates not allowed",
      ),
    ],
  ])("with %s are an error", async ([, objects, error]) => {
    // The classes of this package check nothing themselves.
    const run = await runTool("sdk_tools", "objects", { args: { data_objects: objects } });
    expect(run.document).toEqual({ error, error_code: "EXECUTION_ERROR" });
  });

  test("that their class refuses are an error that names the member", async () => {
    const run = await call("objects", { args: { data_objects: [{ name: "a.txt", content: 5 }] } });
    expect(run.document).toMatchObject({
      error: expect.stringMatching(
        /^Tool raised ValidationError: 2 validation errors for DataObject\ncontent\.str\n/,
      ) as string,
      error_code: "EXECUTION_ERROR",
    });
  });

  test("that cannot be written are an error", async () => {
    expect((await call("object_without_a_place")).document).toEqual({
      error: kept("taken", "Is a directory"),
      error_code: "EXECUTION_ERROR",
    });
  });

  test("of one name may stay beside one that is saved", async () => {
    const objects = [
      { name: "a.txt", content: "1" },
      { name: "a.txt", content: "2", disposition: "inline" },
    ];
    expect((await call("objects", { args: { data_objects: objects } })).document).toMatchObject({
      result: { data_objects: [{ name: "a.txt", content: "2" }] },
    });
  });

  test("of a child that the tool forked are not saved", async () => {
    const run = await call("child_returns_files");
    expect(run.exitCode).toBe(0);
    expect(await readdir(join(run.workDir, "output"))).toEqual(["parent.txt"]);
  });
});
