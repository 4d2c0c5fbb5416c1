/**
 * What docs/write-a-typescript-tool.md shows works as it is printed there.
 */
import { execFile } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { createToolContext } from "secure-tool-runtime/tool";
import { nodeCompanions } from "../../../harness/tool/new/templates/node.ts";
import { installTypes, typeCheck } from "../../support/type-check.ts";
import type { RunOptions, ToolRun } from "../tool-runner/run-tool.ts";
import {
  node,
  removeWorkDirs,
  runTool,
  runnerDir,
  statuses,
  toolsDirectory,
} from "./run-node-tool.ts";

afterAll(removeWorkDirs);

const guide = await readFile(
  join(import.meta.dirname, "../../../docs/write-a-typescript-tool.md"),
  "utf8",
);

/** The first code block of a language that has this text. */
function block(language: string, text: string): string {
  const blocks = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const found = blocks.find(([, name, code]) => name === language && code?.includes(text));
  if (found?.[2] === undefined) throw new Error(`the guide has no ${language} with ${text}`);
  return found[2];
}

/** The guide's tools where a sandbox has them, with the runtime above. */
async function guideTools(): Promise<string> {
  const root = await toolsDirectory({
    "tools/count-words.ts": block("ts", "countWords"),
    "tools/count-words.test.js": block("js", "countWords"),
    "tools/forecast.ts": block("ts", "forecast"),
    "tools/compress.ts": block("ts", "compress"),
    "tools/package.json": '{ "private": true, "type": "module" }',
  });
  await cp(runnerDir, join(root, "node_modules/secure-tool-runtime"), { recursive: true });
  return join(root, "tools");
}

async function call(module: string, name: string, options: RunOptions): Promise<ToolRun> {
  return runTool(module, name, { ...options, toolsDir: await guideTools() });
}

test("the first tool counts, and refuses", { tags: "full" }, async () => {
  const counted = await call("count-words.ts", "countWords", { args: { text: "one two three" } });
  expect(counted.document).toMatchObject({ result: { status: "success", count: 3 } });
  expect(statuses(counted)).toEqual(["Counting..."]);
  expect(await readFile(join(counted.workDir, "output/words.txt"), "utf8")).toBe("one\ntwo\nthree");
  expect((await call("count-words.ts", "countWords", { args: { text: "" } })).document).toEqual({
    error: "There is no text to count",
    error_code: "TOOL_ERROR",
  });
});

test("the tool whose types agents are told", { tags: "full" }, async () => {
  const { document } = await call("forecast.ts", "forecast", { args: { city: "Rome" } });
  expect(document).toMatchObject({ result: { text: "3 sunny days in Rome" } });
});

test("the tool that saves a stream", async () => {
  const run = await call("compress.ts", "compress", {
    args: { input: "a.txt" },
    artifacts: { input: { filename: "a.txt", content: "text" } },
  });
  expect(run.document).toMatchObject({ result: { text: null } });
  expect((await readFile(join(run.workDir, "output/a.txt.gz"))).subarray(0, 2)).toEqual(
    Buffer.from([0x1f, 0x8b]),
  );
});

test("the tests of the first tool", async () => {
  const { stdout } = await promisify(execFile)(node, ["--test"], {
    cwd: await guideTools(),
    env: { PATH: "/usr/bin:/bin" },
  });
  expect(stdout).toMatch(/^. pass 1$/m);
});

test("its tools pass tsc with the tsconfig.json of new tools", { tags: "full" }, async () => {
  const files = {
    "count-words.ts": block("ts", "countWords"),
    "forecast.ts": block("ts", "forecast"),
    "compress.ts": block("ts", "compress"),
    ...nodeCompanions,
  };
  const directory = await toolsDirectory(files);
  await installTypes(directory);
  expect(await typeCheck(directory)).toBe("");
  const checked = { "wrong.ts": block("ts", "compress").replaceAll("listArtifacts", "listAll") };
  const broken = await toolsDirectory({ ...files, ...checked });
  await installTypes(broken);
  expect(await typeCheck(broken)).toMatch(
    /^[^\n]*wrong\.ts\(\d+,\d+\): error TS\d+: [^\n]*listAll[^\n]*\n$/,
  );
});

test("its table names every member of the context", () => {
  const table = guide.slice(guide.indexOf("## The context"), guide.indexOf("Statuses arrive"));
  const named = [...table.matchAll(/`(\w+)(?:\(.*?)?`/g)].map(([, name]) => name);
  const context = createToolContext();
  const members = [
    ...Object.keys(context),
    ...Object.getOwnPropertyNames(Object.getPrototypeOf(context)),
  ].filter((name) => !["constructor", "describedOutputs"].includes(name));
  expect(new Set(named)).toEqual(new Set(members));
});
