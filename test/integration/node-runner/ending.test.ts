/**
 * What a tool leaves running: it may finish, but not hold an answer that is already written.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ToolRun } from "../tool-runner/run-tool.ts";
import { removeWorkDirs, runBody, statuses } from "./run-node-tool.ts";

afterAll(removeWorkDirs);

const lingerMs = 2_000;

/** Runs a tool that does this before it returns. */
function leave(before: string): Promise<ToolRun> {
  return runBody(`
    const fs = await import("node:fs");
    ${before};
    return { ok: true }`);
}

const ok = { exitCode: 0, document: { result: { ok: true } } };

describe("what ends soon is waited for", () => {
  type LateCase = [what: string, before: string];

  const usualLate: readonly LateCase[] = [
    ["a timer", "setTimeout(() => fs.writeFileSync('output/late', 'late'), 100)"],
    [
      "a process",
      `const { spawn } = await import("node:child_process");
       spawn("/bin/sh", ["-c", "sleep 0.1; printf late > output/late"])`,
    ],
    ["an exit handler", "process.on('exit', () => fs.writeFileSync('output/late', 'late'))"],
  ];
  const otherLate: readonly LateCase[] = [
    ["a write that nobody awaited", "void fs.promises.writeFile('output/late', 'late')"],
    ["a stream that nobody ended", "fs.createWriteStream('output/late').write('late')"],
    [
      "a worker thread",
      `const { Worker } = await import("node:worker_threads");
       new Worker("setTimeout(() => require('node:fs').writeFileSync('output/late', 'late'), 50)", { eval: true })`,
    ],
    [
      "a listener that finds something to do when the process is idle",
      "process.once('beforeExit', () => fs.promises.writeFile('output/late', 'late'))",
    ],
  ];
  const showLate = async ([, before]: LateCase) => {
    const run = await leave(before);
    expect(run).toMatchObject({ ...ok, stderr: "" });
    expect(await readFile(join(run.workDir, "output/late"), "utf8")).toBe("late");
  };

  test.for(usualLate)("%s", showLate);
  test.for(otherLate)("%s", { tags: "full" }, showLate);

  test("statuses after the answer", async () => {
    const run = await leave("setTimeout(() => ctx.sendStatus('after all'), 50)");
    expect(run).toMatchObject(ok);
    expect(statuses(run)).toEqual(["after all"]);
  });

  test.for([
    "setInterval(() => {}, 60_000).unref()",
    "globalThis.forEver = new Promise(() => {})",
    "const { createServer } = await import('node:net'); createServer().listen(0).unref()",
  ])("%s does not delay the end", async (before) => {
    // Had its time run out, stderr would say so.
    expect(await leave(before)).toMatchObject({ ...ok, stderr: "" });
  });
});

describe("what does not end is ended two seconds after the answer", () => {
  const pipe = `
    const { execFileSync } = await import("node:child_process");
    execFileSync("mkfifo", ["nobody-writes"])`;

  type EndlessCase = [what: string, before: string];

  const usualEndless: readonly EndlessCase[] = [
    ["a server", "const { createServer } = await import('node:net'); createServer().listen(0)"],
  ];
  const otherEndless: readonly EndlessCase[] = [
    ["a timer", "setInterval(() => {}, 100)"],
    [
      "a worker thread that is busy",
      `const { Worker } = await import("node:worker_threads"); new Worker("for (;;);", { eval: true })`,
    ],
    [
      "a process",
      `const { spawn } = await import("node:child_process"); spawn("/bin/sleep", ["10"], { stdio: "ignore" })`,
    ],
    [
      "a read that Node itself would wait for",
      `${pipe}; void fs.promises.readFile("nobody-writes")`,
    ],
    [
      "work in the thread pool",
      `const { pbkdf2 } = await import("node:crypto"); pbkdf2("a", "b", 1e9, 64, "sha512", () => {})`,
    ],
  ];
  const showEndless = async ([, before]: EndlessCase) => {
    const run = await leave(before);
    expect(run).toMatchObject(ok);
    expect(run.stderr).toBe("tool_runner: ended what was still running 2 s after the tool\n");
    expect(run.durationMs).toBeGreaterThanOrEqual(lingerMs);
  };

  test.for(usualEndless)("%s", showEndless);
  test.for(otherEndless)("%s", { tags: "full" }, showEndless);
});

describe("nothing that comes after the answer changes the exit status", () => {
  type AfterCase = [what: string, before: string];

  const usualAfter: readonly AfterCase[] = [
    ["process.exit", "setTimeout(() => process.exit(3))"],
    ["an exception", "setTimeout(() => { throw new Error('late') })"],
  ];
  const otherAfter: readonly AfterCase[] = [
    ["process.exitCode", "process.exitCode = 3"],
    ["process.exit in an exit handler", "process.on('exit', () => process.exit(3))"],
    ["process.exit when idle", "process.on('beforeExit', () => process.exit(3))"],
    ["process.exitCode in an exit handler", "process.on('exit', () => { process.exitCode = 3 })"],
    ["an exception in an exit handler", "process.on('exit', () => { throw new Error('late') })"],
    ["a rejection", "setTimeout(() => Promise.reject(new Error('late')))"],
    [
      "an exception while the thread pool is busy",
      `
      const { pbkdf2 } = await import("node:crypto");
      pbkdf2("a", "b", 1e9, 64, "sha512", () => {});
      setTimeout(() => { throw new Error("late") })`,
    ],
  ];
  const showAfter = async ([, before]: AfterCase) => {
    expect(await leave(before)).toMatchObject(ok);
  };

  test.for(usualAfter)("%s", showAfter);
  test.for(otherAfter)("%s", { tags: "full" }, showAfter);
});
