/**
 * A cache that several processes fill, use and evict from at once, and in which some are killed.
 *
 * @module-tag full
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { never, sourceOf, text } from "../../../conformance/artifacts/under-test.ts";
import { newCache } from "../../../support/cached-store.ts";

const run = promisify(execFile);
const program = join(import.meta.dirname, "cache-user.ts");
const sizeBytes = 256 * 1024;

/** What the program prints at last. */
function resultIn(stdout: string) {
  return JSON.parse(stdout.split("\n").at(-2)!) as { right: number; fromCache: number };
}

/** A store with ten artifacts, and a cache with room for four. */
async function surroundings() {
  const cache = await newCache(4 * sizeBytes);
  const base = await mkdtemp(join(cache.directory, "../base-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const store = createFilesystemStore({ basePath: base });
  const scope = { root: "shared", userId: "user-42", sessionId: "web-1" };
  for (let value = 0; value < 10; value++)
    await store.save(scope, `${value}.bin`, sourceOf(Buffer.alloc(sizeBytes, value)), text, never);
  const argv = (rounds: number) => [
    program,
    base,
    cache.directory,
    `${4 * sizeBytes}`,
    `${rounds}`,
  ];
  return { cache, argv };
}

test("all read what the store has, within the bound", async () => {
  const { cache, argv } = await surroundings();
  const rounds = 200;
  const ended = await Promise.all([1, 2, 3].map(() => run(process.execPath, argv(rounds))));
  for (const { stdout, stderr } of ended) {
    expect(stderr).toBe("");
    const result = resultIn(stdout);
    expect(result.right).toBe(rounds);
    expect(result.fromCache).toBeGreaterThan(rounds / 4);
  }
  const sizes = await Promise.all(
    (await cache.entries()).map(async (path) => (await stat(path)).size),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(5 * sizeBytes);
  expect(await cache.processFiles()).toEqual([]);
});

test("the files of one that is killed are swept by the next, and none of its entries is wrong", async () => {
  const { cache, argv } = await surroundings();
  for (let kill = 0; kill < 4; kill++) {
    const child = spawn(process.execPath, argv(100_000), { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    for (let line = 0; line < 1 + 3 * kill; line++) await once(lines, "line");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await cache.processFiles()).not.toEqual([]);
  }
  const { stdout, stderr } = await run(process.execPath, argv(50));
  expect({ stderr, ...resultIn(stdout) }).toMatchObject({
    stderr: "",
    right: 50,
  });
  expect(await cache.processFiles()).toEqual([]);
});
