/**
 * A cache of two processes, one of which is killed in the midst of changing it.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { never } from "../../../conformance/artifacts/under-test.ts";
import { newCache } from "../../../support/cached-store.ts";
import { counted, readBytes, saveBytes } from "./altered-store.ts";

const program = join(import.meta.dirname, "cache-victim.ts");
const entryBytes = 256 * 1024;
const maxBytes = 8 * entryBytes;
const names = ["a", "b", "c", "d", "e", "f"];

/** A store with artifacts of which a cache has some, and a process that uses both. */
async function survivor() {
  const cache = await newCache(maxBytes);
  const base = await mkdtemp(join(cache.directory, "../base-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const { store, opened } = counted(createFilesystemStore({ basePath: base }));
  const start = () => cache.before(store, "shared");
  const cached = start();
  onTestFinished(() => cached[Symbol.asyncDispose]());
  for (const name of names) {
    await saveBytes(store, name, entryBytes);
    await readBytes(cached, name);
  }
  await saveBytes(store, "new", 2 * entryBytes);
  const others = async () =>
    (await cache.processFiles()).filter((path) => !path.endsWith("/alive"));
  const kill = async (filename: string, step: string): Promise<void> => {
    const argv = [program, base, cache.directory, `${maxBytes}`, filename, step];
    const killed = promisify(execFile)(process.execPath, argv);
    await expect(killed).rejects.toMatchObject({ signal: "SIGKILL", stderr: "" });
  };
  return { cache, cached, start, store, opened, kill, others };
}

/** All that the store has, in the cache or out of it. */
async function expectAll(store: Awaited<ReturnType<typeof survivor>>["cached"]): Promise<void> {
  for (const name of names)
    expect(Buffer.alloc(entryBytes, name).equals(await readBytes(store, name))).toBe(true);
  expect(Buffer.alloc(2 * entryBytes, "new").equals(await readBytes(store, "new"))).toBe(true);
}

test("in the midst of a transfer leaves the other its entries, and a file that a start removes", async () => {
  const { cache, cached, start, opened, kill, others } = await survivor();
  const entries = await cache.entries();
  await kill("new", "fill");
  // Half of an artifact, which is no entry.
  expect(await others()).toHaveLength(1);
  expect((await stat((await others())[0]!)).size).toBe(entryBytes);
  expect(await cache.entries()).toEqual(entries);
  opened.length = 0;
  await expectAll(cached);
  expect(opened).toEqual(["new"]);
  const next = start();
  onTestFinished(() => next[Symbol.asyncDispose]());
  await next.check(never);
  expect(await others()).toEqual([]);
  // One of each process that lives.
  expect(await cache.processFiles()).toHaveLength(2);
  await expectAll(next);
  expect(cache.events).toEqual([]);
});

test("in the midst of an eviction leaves the other all entries but one, and the next start nothing", async () => {
  const { cache, cached, start, store, opened, kill, others } = await survivor();
  await readBytes(cached, "new");
  await saveBytes(store, "more", 2 * entryBytes);
  const entries = await cache.entries();
  await kill("more", "eviction");
  expect(await cache.entries()).toHaveLength(entries.length - 1);
  opened.length = 0;
  await expectAll(cached);
  expect(opened).toHaveLength(1);
  const next = start();
  onTestFinished(() => next[Symbol.asyncDispose]());
  await next.check(never);
  expect(await others()).toEqual([]);
  expect(await cache.processFiles()).toHaveLength(2);
  const more = Buffer.alloc(2 * entryBytes, "more");
  for (const each of [next, cached]) {
    expect(more.equals(await readBytes(each, "more"))).toBe(true);
    await expectAll(each);
  }
  const sizes = await Promise.all(
    (await cache.entries()).map(async (path) => (await stat(path)).size),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual((maxBytes * 9) / 8);
  expect(cache.events).toEqual([]);
});
