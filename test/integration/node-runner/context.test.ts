/**
 * The context that a tool is handed: who calls, configuration, artifacts in and out.
 */
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { afterAll, describe, expect, test } from "vitest";
import type { RunOptions } from "../tool-runner/run-tool.ts";
import { answerHere, answerOf, removeWorkDirs, runBody } from "./run-node-tool.ts";

afterAll(removeWorkDirs);

async function resultOf(body: string, options: RunOptions = {}): Promise<unknown> {
  const document = (await answerOf(body, options)) as { result?: unknown };
  expect(document).toHaveProperty("result");
  return document.result;
}

test("a tool can ask who calls", async () => {
  expect(
    await resultOf(
      "const { userId, sessionId, appName, taskId } = ctx; return { userId, sessionId, appName, taskId }",
    ),
  ).toEqual({ userId: "user-42", sessionId: "web-1", appName: "AgentA", taskId: "task-7" });
});

test("a tool can ask for its configuration", async () => {
  expect(
    await resultOf(
      `return {
        known: await ctx.getConfig("key"),
        absent: await ctx.getConfig("absent"),
        otherwise: await ctx.getConfig("absent", 7),
        off: await ctx.getConfig("off", 7),
        inherited: await ctx.getConfig("constructor"),
      }`,
      { toolConfig: { key: { deep: [1] }, off: null } },
    ),
  ).toEqual({ known: { deep: [1] }, absent: null, otherwise: 7, off: null, inherited: null });
});

describe("input artifacts", () => {
  const artifacts = {
    report: { filename: "q3.csv", content: "a,b" },
    "files[0]": { filename: "one.txt", content: "1" },
    "files[1]": { filename: "two.txt", content: "2" },
  };
  const load = `
    const loaded = {};
    for (const name of args.names) loaded[name] = await ctx.loadArtifactText(name);
    return loaded`;

  test("are loaded by parameter, by list parameter and by filename", async () => {
    const names = ["report", "files[0]", "files[1]", "files", "q3.csv", "two.txt", "absent"];
    expect(await resultOf(load, { args: { names }, artifacts })).toEqual({
      report: "a,b",
      "files[0]": "1",
      "files[1]": "2",
      files: null,
      "q3.csv": "a,b",
      "two.txt": "2",
      absent: null,
    });
  });

  test("are loaded by the name that they have in the store", async () => {
    const members = { artifact_metadata: { report: { filename: "as in the store.csv" } } };
    const args = { names: ["as in the store.csv", "one.txt"] };
    expect(await resultOf(load, { args, artifacts, members })).toEqual({
      "as in the store.csv": "a,b",
      "one.txt": "1",
    });
  });

  test("whose file is gone are absent", async () => {
    const members = { artifact_paths: { report: "/nowhere/q3.csv" } };
    expect(await resultOf(load, { args: { names: ["report", "toString"] }, members })).toEqual({
      report: null,
      toString: null,
    });
  });

  test("are bytes", async () => {
    const content = Buffer.from([0, 255, 128]);
    const body = `
      const content = await ctx.loadArtifact("raw");
      return { bytes: [...content], is: content instanceof Uint8Array }`;
    expect(await resultOf(body, { artifacts: { raw: { filename: "raw.bin", content } } })).toEqual({
      bytes: [0, 255, 128],
      is: true,
    });
  });

  test("are listed with their paths, in a copy", async () => {
    const body = `
      (await ctx.listArtifacts()).report = "changed";
      return Object.fromEntries(Object.entries(await ctx.listArtifacts()).map(([k, v]) => [k, v.split("/").at(-1)]))`;
    expect(await resultOf(body, { artifacts })).toEqual({
      report: "q3.csv",
      "files[0]": "one.txt",
      "files[1]": "two.txt",
    });
  });

  test("are decoded as the tool says", async () => {
    const latin = { note: { filename: "note.txt", content: Buffer.from("é", "latin1") } };
    const decode = (encoding?: string) =>
      answerOf("return ctx.loadArtifactText('note', args.encoding)", {
        args: { encoding },
        artifacts: latin,
      });
    expect(await decode("latin1")).toMatchObject({ result: { text: "é" } });
    expect(await decode()).toMatchObject({
      error: "Tool threw TypeError: The encoded data was not valid for encoding utf-8",
    });
    expect(await decode("klingon")).toMatchObject({
      error: 'Tool threw RangeError: The "klingon" encoding is not supported',
    });
  });
});

describe("output artifacts", () => {
  test("are files in output/, with what the tool said of them in the result", async () => {
    const run = await runBody(`
      const paths = [
        await ctx.saveArtifact("plain.bin", new Uint8Array([0, 1])),
        await ctx.saveArtifact("said.dat", Buffer.from("a,b"), { mimeType: "text/csv", description: "a table" }),
        await ctx.saveArtifact("described.txt", "text", { description: "only described" }),
        await ctx.saveArtifactText("notes", "é"),
        await ctx.saveArtifactText("page.html", "<p>", { mimeType: "text/html" }),
        await ctx.saveArtifactText("replaced.txt", "first", { description: "first" }),
        await ctx.saveArtifactText("replaced.txt", "second"),
      ];
      const fs = await import("node:fs");
      fs.mkdirSync("output/directory");
      fs.symlinkSync("plain.bin", "output/link");
      return { paths, listed: await ctx.listOutputArtifacts() }`);
    expect(run.document).toMatchObject({
      result: {
        paths: expect.arrayContaining([join(run.workDir, "output/notes")]),
        listed: ["described.txt", "notes", "page.html", "plain.bin", "replaced.txt", "said.dat"],
      },
    });
    expect(run.document?.["outputs"]).toEqual({
      "said.dat": { mime_type: "text/csv", description: "a table" },
      "described.txt": { description: "only described" },
      notes: { mime_type: "text/plain" },
      "page.html": { mime_type: "text/html" },
    });
    const content = (name: string) => readFile(join(run.workDir, "output", name));
    expect(await content("plain.bin")).toEqual(Buffer.from([0, 1]));
    expect(await content("notes")).toEqual(Buffer.from("é"));
    expect(await content("replaced.txt")).toEqual(Buffer.from("second"));
  });

  type MadeCase = [what: string, content: string, saved: string];

  const usualMade: readonly MadeCase[] = [
    ["part of a buffer", "new Uint8Array([97, 98, 99]).subarray(1)", "bc"],
    ["a web stream", "new Response('web').body", "web"],
  ];
  const otherMade: readonly MadeCase[] = [
    ["an ArrayBuffer", "new Uint8Array([97, 98]).buffer", "ab"],
    ["a DataView", "new DataView(new Uint8Array([97, 98, 99]).buffer, 1, 1)", "b"],
    [
      "a readable stream",
      "(await import('node:stream')).Readable.from(['a', Buffer.from('b')])",
      "ab",
    ],
    [
      "an async generator",
      "(async function* () { yield 'a'; yield new Uint8Array([98]); })()",
      "ab",
    ],
  ];
  const showMade = async ([, content, saved]: MadeCase) => {
    const run = await runBody(`await ctx.saveArtifact("a", ${content})`);
    expect(run.document).toHaveProperty("result");
    expect(await readFile(join(run.workDir, "output/a"), "utf8")).toBe(saved);
  };

  test.for(usualMade)("may be made of %s", showMade);
  test.for(otherMade)("may be made of %s", { tags: "full" }, showMade);

  test.for<[what: string, content: string, kind: string]>([
    ["nothing", "undefined", "undefined"],
    ["a number", "7", "a number"],
    ["an object", "{}", "an object"],
    ["an array of numbers", "[1, 2]", "an array"],
    ["a promise", "Promise.resolve('x')", "an object"],
  ])("are not made of %s", async ([, content, kind]) => {
    expect(await answerHere(`await ctx.saveArtifact("a", ${content})`)).toMatchObject({
      error: `Tool threw TypeError: content must be bytes, text or a stream, not ${kind}`,
    });
  });

  test("of text must be text", async () => {
    expect(await answerHere("await ctx.saveArtifactText('a', Buffer.from('b'))")).toMatchObject({
      error: "Tool threw TypeError: content must be text, not an object",
    });
  });

  test("of which only half could be saved are not there", async () => {
    const run = await runBody(`
      const half = (async function* () { yield "half"; throw new Error("broken off"); })();
      try { await ctx.saveArtifact("half.txt", half, { description: "half" }) } catch (error) { return { text: error.message } }`);
    expect(run.document).toEqual({ result: { text: "broken off" }, outputs: {} });
    expect(await readdir(join(run.workDir, "output"))).toEqual([]);
  });

  test.for<[filename: unknown, refusal: string]>([
    ["", 'RangeError: artifact filename "" is empty'],
    [".", 'RangeError: artifact filename "." names a directory'],
    ["..", 'RangeError: artifact filename ".." names a directory'],
    [
      "../x",
      'RangeError: artifact filename "../x" contains a path separator; artifacts have plain names',
    ],
    [
      "/etc/x",
      'RangeError: artifact filename "/etc/x" contains a path separator; artifacts have plain names',
    ],
    [
      "a\\b",
      'RangeError: artifact filename "a\\\\b" contains a path separator; artifacts have plain names',
    ],
    ["a\0b", 'RangeError: artifact filename "a\\u0000b" contains a control character'],
    ["a\nb", 'RangeError: artifact filename "a\\nb" contains a control character'],
    ["a\u0085b", 'RangeError: artifact filename "a\u0085b" contains a control character'],
    [
      "a\ud800",
      'RangeError: artifact filename "a\\ud800" contains a lone surrogate, which no file name can hold',
    ],
    [
      "é".repeat(128),
      `RangeError: artifact filename "${"é".repeat(80)}" is 256 bytes long; at most 255 are possible`,
    ],
    [7, "TypeError: an artifact's filename must be text, not a number"],
  ])("named %j are refused", async ([filename, refusal]) => {
    const save = "await ctx.saveArtifact(args.filename, 'x')";
    expect(await answerHere(save, { filename })).toMatchObject({
      error: `Tool threw ${refusal}`,
    });
  });

  describe("whatever the name", { tags: "full" }, () => {
    property.prop([fc.string({ unit: anyCharacter, maxLength: 120 })], { numRuns: 25 })(
      "under any name are saved under exactly this name or refused",
      async (filename) => {
        const save = "await ctx.saveArtifact(args.filename, 'kept')";
        const run = await runBody(save, { args: { filename } });
        if (run.document?.["error"] !== undefined) return;
        expect(await readFile(join(run.workDir, "output", filename), "utf8")).toBe("kept");
      },
    );
  });
});
