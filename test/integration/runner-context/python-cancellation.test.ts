/**
 * What a Python tool sees of the end of its call: SIGTERM of the worker, before SIGKILL.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type ToolRun, removeWorkDirs, runTool, statuses } from "../tool-runner/run-tool.ts";

afterAll(removeWorkDirs);

function run(name: string): Promise<ToolRun> {
  return runTool("cancel_tools", name);
}

function output({ workDir }: ToolRun, name: string): Promise<string> {
  return readFile(join(workDir, "output", name), "utf8");
}

const resultOf = (ended: ToolRun): unknown => ended.document?.["result"];

describe("a tool", () => {
  test.for(["asks_nothing", "asks_in_thread"])(
    "is ended by SIGTERM when nothing in its main thread has asked: %s",
    async (name) => {
      expect(await run(name)).toMatchObject({ signal: "SIGTERM", document: undefined });
    },
  );

  test("that asked goes on, and finds that its call is being ended", async () => {
    expect(resultOf(await run("asks"))).toEqual({ before: false, after: true });
  });

  test("is called back once, whatever it holds, and whatever other callbacks raise", async () => {
    const ended = await run("calls_back");
    expect(resultOf(ended)).toEqual({ called: ["fails", "takes lock", "at once"] });
    expect(ended.stderr).toContain("ValueError: of a callback");
  });

  test("that has ended is waited for by its process until its callbacks have", async () => {
    const ended = await run("is_outlived");
    expect(resultOf(ended)).toEqual({});
    expect(await output(ended, "late.txt")).toBe("late");
  });

  test("keeps a handler of its own", async () => {
    expect(resultOf(await run("has_own_handler"))).toEqual({ called: ["own"], cancelled: true });
  });
});

describe("a process that a tool has made", () => {
  test.for(["terminates_child", "terminates_child_async"])(
    "can be terminated as ever: %s",
    async (name) => {
      const ended = await run(name);
      expect(resultOf(ended)).toEqual({ exitcode: -15, cancelled: false });
      expect(statuses(ended)).toEqual([]);
    },
  );

  test("is ended by SIGTERM, also when it asks", async () => {
    expect(resultOf(await run("asks_in_child"))).toEqual({ status: 15, cancelled: false });
  });

  test("gets the context, and is not told", async () => {
    const ended = await run("asks_in_spawned");
    expect(resultOf(ended)).toEqual({ exitcode: 0 });
    expect(statuses(ended)).toEqual(["spawned: False"]);
  });
});

describe("an asynchronous tool", () => {
  test("gets a CancelledError where it awaits", async () => {
    const ended = await run("awaits");
    expect(ended).toMatchObject({
      exitCode: 0,
      document: { error: expect.stringContaining("CancelledError") as unknown },
    });
    expect(await output(ended, "cleaned.txt")).toBe("up");
  });

  test("is as ever when its call goes on", async () => {
    expect(resultOf(await run("awaits_nothing"))).toEqual({ cancelled: false });
  });

  test("has the same in its own context", async () => {
    expect(resultOf(await run("facade"))).toEqual({ cancelled: false, called: [] });
  });
});

test("the test of a tool cancels its context itself", async () => {
  expect(resultOf(await run("tested"))).toEqual({
    before: [false, false],
    after: true,
    called: [true],
  });
});
