/**
 * What a tool leaves running: it may finish, but not hold an answer that is already written.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { type RunOptions, type ToolRun, removeWorkDirs, runTool, statuses } from "./run-tool.ts";

afterAll(removeWorkDirs);

const lingerMs = 2_000;
const ok = { exitCode: 0, document: { result: { ok: true } } };

function leave(name: string, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("ending_tools", name, options);
}

function output(run: ToolRun, name: string): Promise<string> {
  return readFile(join(run.workDir, "output", name), "utf8");
}

describe("what ends soon is waited for", () => {
  test.for([
    ["a thread", "thread_that_ends"],
    ["thread-local values", "thread_that_ends_its_values"],
  ] as const)("%s", async ([, name]) => {
    const run = await leave(name);
    expect(run).toMatchObject(ok);
    expect(await output(run, "late.txt")).toBe("late");
  });

  test.for([
    ["an exit handler", "exit_handler"],
    ["a handler that `threading` runs before it joins threads", "exit_handler_of_threads"],
  ] as const)("%s", async ([, name]) => {
    const run = await leave(name);
    expect(run).toMatchObject(ok);
    expect(await output(run, "atexit.txt")).toBe("ran");
  });

  test("a file that the tool did not close is complete", async () => {
    const run = await leave("unclosed_file");
    expect(await output(run, "unclosed.txt")).toBe("buffered");
  });

  test.for([
    ["a compressed file", "unclosed_compressed", (bytes: Buffer) => gunzipSync(bytes).toString()],
    // What is behind its last file.
    ["an archive", "unclosed_archive", (bytes: Buffer) => bytes.toString("latin1").slice(-22, -18)],
    ["a file of a library", "unclosed_library_file", String],
  ] as const)("%s that the tool did not close is complete", async ([, name, read]) => {
    const run = await leave(name);
    expect(run).toMatchObject(ok);
    const written = await readFile(join(run.workDir, "output", "unclosed"));
    expect(read(written)).toBe(name === "unclosed_archive" ? "PK\u0005\u0006" : "buffered");
  });

  test.for(["thread", "process"])("work of a pool with a %s", async (kind) => {
    const run = await leave("pool_with_work", { args: { kind } });
    expect(run).toMatchObject({ ...ok, stderr: "" });
    expect(await output(run, "late.txt")).toBe("late");
  });

  test.for(["daemon_thread", "idle_pool"])("%s does not delay the end", async (name) => {
    // Had its time run out, stderr would say so.
    expect(await leave(name)).toMatchObject({ exitCode: 0, stderr: "" });
  });
});

test("objects that still live are not told of the end", async () => {
  const run = await leave("object_that_wants_to_know");
  expect(run).toMatchObject({ ...ok, stdout: "", stderr: "" });
});

describe("what does not end is ended two seconds after the answer", () => {
  type Stays = readonly [name: string, ending: object];
  const isEnded = async ([name, ending]: Stays): Promise<void> => {
    const run = await leave(name);
    expect(run).toMatchObject(ending);
    expect(run.stderr).toBe(
      "tool_runner: ended threads or exit handlers that were still running 2 s after the tool\n",
    );
    expect(run.durationMs).toBeGreaterThanOrEqual(lingerMs);
  };
  const exits: Stays = ["exits_with_thread", { exitCode: 5, document: undefined }];
  test.for([exits])("%s", isEnded);
  const others: readonly Stays[] = [
    ["thread_that_stays", ok],
    ["exit_handler_that_stays", ok],
  ];
  test.for(others)("%s", { tags: "full" }, isEnded);
});

describe("a child that the tool forked does not answer for it", () => {
  test("when it returns", async () => {
    const run = await leave("child_that_returns");
    expect(run).toMatchObject({ exitCode: 0, document: { result: { who: "parent" } } });
    expect(statuses(run)).toEqual(["child"]);
  });

  test("when it raises", async () => {
    expect(await leave("child_that_raises")).toMatchObject({
      exitCode: 0,
      document: { result: { child: 1 } },
      stderr: expect.stringContaining("ValueError: in the child") as string,
    });
  });

  test("when it exits", async () => {
    expect(await leave("child_that_exits")).toMatchObject({
      exitCode: 0,
      document: { result: { child: 4 } },
    });
  });
});

const usualMethod: readonly string[] = ["spawn"];
const otherMethod: readonly string[] = ["fork", "forkserver"];
const showMethod = async (method: string) => {
  expect(await leave("multiprocessing_pool", { args: { method } })).toMatchObject({
    exitCode: 0,
    document: { result: { doubled: [2, 4, 6] } },
  });
};

test.for(usualMethod)(
  "processes of multiprocessing that %s can run the tool's functions",
  showMethod,
);
test.for(otherMethod)(
  "processes of multiprocessing that %s can run the tool's functions",
  { tags: "full" },
  showMethod,
);
