/**
 * The design document's example tool runs as it is printed there, and a recorded tool that a worker
 * would end. The recorded invocations are replayed in test/integration/worker/golden.test.ts.
 */
import { readFileSync } from "node:fs";
import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { fixtures, removeWorkDirs, runTool } from "./run-tool.ts";

afterAll(removeWorkDirs);

const golden = join(import.meta.dirname, "../../fixtures/golden");

test("a tool that forks a child and returns does not wait for it", async () => {
  // The child holds the runner's output streams open: they go elsewhere here, as nothing ends the
  // child.
  let workDir = "";
  onTestFinished(async () => {
    for (const pid of await processesAt(workDir)) process.kill(pid, "SIGKILL");
  });
  const run = await runTool("simple_tools", "fork_child", {
    args: { seconds: 600 },
    onStart: (path) => {
      workDir = path;
    },
    toolsDir: golden,
    prefix: ["/bin/sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh"],
  });
  expect(run.document).toEqual({ result: { parent: "done" }, outputs: {} });
  expect(await processesAt(workDir)).toHaveLength(1);
});

/** The processes whose working directory this is. */
async function processesAt(directory: string): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const places = await Promise.all(
    pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => undefined)),
  );
  return pids.filter((_, index) => places[index] === directory).map(Number);
}

test("the design document's example tool runs as it is printed there", async () => {
  const text = "one two\nthree";
  const run = await runTool("design_document_tool", "process_file", {
    args: { input_file: "in.txt" },
    artifacts: { input_file: { filename: "in.txt", content: text } },
  });
  expect(run.document).toEqual({
    result: {
      status: "success",
      statistics: { line_count: 2, word_count: 3, char_count: text.length },
      output_artifact: "summary.txt",
    },
    outputs: {},
  });
  expect(run.statusLines).toEqual([
    '{"status": "Loading input file..."}',
    '{"status": "Analyzing content..."}',
  ]);
  expect(readFileSync(join(run.workDir, "output/summary.txt"), "utf8")).toBe(
    `Lines: 2\nWords: 3\nChars: ${text.length}`,
  );
  expect(readFileSync(join(fixtures, "design_document_tool.py"), "utf8")).toContain("ctx: Any");
});

test("the design document's example tool says when its artifact is missing", async () => {
  const run = await runTool("design_document_tool", "process_file", {
    args: { input_file: "in.txt" },
  });
  expect(run.document).toMatchObject({
    result: { status: "error", error: "Could not load input artifact" },
  });
});
