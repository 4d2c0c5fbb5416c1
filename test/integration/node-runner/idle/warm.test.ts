/**
 * `--warm`: a compile cache that spares calls the compiling of TypeScript.
 */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { node, runnerDir, toolsDirectory } from "../run-node-tool.ts";

const run = promisify(execFile);

async function warm(files: Record<string, string>, module: string, env: object = {}) {
  const directory = await toolsDirectory(files);
  const cacheDir = join(directory, "cache");
  const argv = [join(runnerDir, "main.js"), "--warm", join(directory, module), cacheDir];
  const ended = await run(node, argv, { env: { ...env } }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    (error: { code: number; stderr: string }) => ({ code: error.code, stderr: error.stderr }),
  );
  const cached = await readdir(cacheDir, { recursive: true }).catch(() => []);
  return { ...ended, directory, cacheDir, cachedFiles: Math.max(cached.length - 1, 0) };
}

const tool = {
  "tool.mts": 'import { b } from "./b.mts"; export const f = (): number => b;',
  "b.mts": "export const b: number = 1;",
};

test("a module and what it imports are in the cache, stripped of types and compiled", async () => {
  const { code, stderr, cachedFiles, directory, cacheDir } = await warm(tool, "tool.mts");
  expect({ code, stderr, cachedFiles }).toEqual({ code: 0, stderr: "", cachedFiles: 4 });
  const { stderr: trace } = await run(
    node,
    ["--max-old-space-size=100", join(directory, "tool.mts")],
    {
      env: { NODE_COMPILE_CACHE: cacheDir, NODE_DEBUG_NATIVE: "COMPILE_CACHE" },
    },
  );
  expect(trace.match(/retrieving transpile cache .*success/g)).toHaveLength(2);
  expect(trace.match(/V8 code cache .* was accepted/g)).toHaveLength(2);
});

test("NODE_COMPILE_CACHE has the runner's own files in the cache, too", async () => {
  const cacheDir = await toolsDirectory({});
  await warm(tool, "tool.mts", { NODE_COMPILE_CACHE: cacheDir });
  expect((await readdir(cacheDir, { recursive: true })).length).toBeGreaterThan(10);
});

test("a module that cannot be imported is said so; what could be compiled is in the cache", async () => {
  const files = { "tool.mjs": 'import "./b.mjs"; throw new Error("no config")', "b.mjs": "" };
  expect(await warm(files, "tool.mjs")).toMatchObject({
    code: 1,
    stderr: "tool_runner: the module cannot be imported: Error: no config\n",
    cachedFiles: 2,
  });
});

test("a module that keeps the process alive does not keep it", async () => {
  const files = { "tool.mjs": "setInterval(() => {}, 1000)" };
  expect(await warm(files, "tool.mjs")).toMatchObject({ code: 0, cachedFiles: 1 });
});

test("a cache that cannot be used is said so", async () => {
  const directory = await toolsDirectory({ "tool.mjs": "", cache: "a file" });
  const argv = [
    join(runnerDir, "main.js"),
    "--warm",
    join(directory, "tool.mjs"),
    join(directory, "cache"),
  ];
  await expect(run(node, argv, { env: {} })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("tool_runner: the compile cache cannot be used"),
  });
});
