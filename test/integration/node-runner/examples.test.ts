/**
 * The example tools, with their directory and the runtime's package where a sandbox has them.
 */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunOptions, ToolRun } from "../tool-runner/run-tool.ts";
import { node, removeWorkDirs, runTool, runnerDir, statuses } from "./run-node-tool.ts";

const examples = join(import.meta.dirname, "../../../examples/tools/node");

let root = "";

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "node-examples-")));
  await cp(examples, join(root, "node"), { recursive: true });
  await cp(runnerDir, join(root, "node_modules/secure-tool-runtime"), { recursive: true });
});
afterAll(() => rm(root, { recursive: true }));
afterAll(removeWorkDirs);

function run(module: string, name: string, options: RunOptions): Promise<ToolRun> {
  return runTool(module, name, { toolsDir: join(root, "node"), ...options });
}

test("summarizeCsv reads an artifact and saves a table", async () => {
  const summarized = await run("summarize-csv.ts", "summarizeCsv", {
    args: { table: "cities.csv" },
    artifacts: { table: { filename: "cities.csv", content: "city,degrees\nOslo,-2\nRome,12\n" } },
  });
  expect(summarized).toMatchObject({ exitCode: 0, stderr: "" });
  expect(summarized.document).toEqual({
    result: {
      rows: 2,
      columns: [
        { name: "city", filled: 2, min: null, max: null, mean: null },
        { name: "degrees", filled: 2, min: -2, max: 12, mean: 5 },
      ],
      output_artifact: "summary.md",
    },
    outputs: {
      "summary.md": { mime_type: "text/markdown", description: "Columns of cities.csv" },
    },
  });
  expect(await readFile(join(summarized.workDir, "output/summary.md"), "utf8")).toBe(
    "| column | filled | min | max | mean |\n|---|---|---|---|---|\n" +
      "| city | 2 |  |  |  |\n| degrees | 2 | -2 | 12 | 5 |\n",
  );
  expect(statuses(summarized)).toEqual([
    "Reading the table...",
    "Looking at 2 columns of 2 rows...",
  ]);
});

test("addBusinessDays answers, or refuses with a ToolError", async () => {
  const call = (args: object) => run("business-days.ts", "addBusinessDays", { args });
  expect((await call({ date: "2027-02-26", days: 1 })).document).toMatchObject({
    result: { date: "2027-03-01", weekday: "Monday" },
  });
  expect((await call({ date: "tomorrow", days: 1 })).document).toEqual({
    error: '"date" must be a date such as "2027-02-26"',
    error_code: "TOOL_ERROR",
  });
});

test("countDown tells each step", async () => {
  const counted = await run("count-down.js", "countDown", {
    args: { from: 2, pause_seconds: 0.01 },
  });
  expect(counted.document).toMatchObject({ result: { word: "Lift-off" } });
  expect(statuses(counted)).toEqual(["2...", "1..."]);
});

test("their own tests pass", async () => {
  // The variables of vitest would make the test runner of Node report in another way.
  const { stdout } = await promisify(execFile)(node, ["--test", "tools.test.js"], {
    cwd: join(root, "node"),
    env: { PATH: "/usr/bin:/bin" },
  });
  expect(stdout).toMatch(/^. fail 0$/m);
  expect(stdout).toMatch(/^. pass 6$/m);
});
