/**
 * What a cache holds: no more than its disk can spare, and nothing that it could not check.
 */
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { never, readText, saveText } from "../../../conformance/artifacts/under-test.ts";
import { type TestCache, newCache } from "../../../support/cached-store.ts";
import { patience } from "../../../support/patience.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";
import { altered, counted, fileStore, readBytes, saveBytes, scope } from "./altered-store.ts";

const MiB = 1024 ** 2;

function before(cache: TestCache, store: ArtifactStore): ArtifactStore {
  const cached = cache.before(store);
  onTestFinished(() => cached[Symbol.asyncDispose]());
  return cached;
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

describe("a cache on a disk with others", () => {
  test("leaves it the space that it has to, whatever its own size may be", async () => {
    const disk = await ownFileSystem("32m");
    const cache = await newCache(1024 * MiB, disk, 16 * MiB);
    const { store, opened } = counted(await fileStore());
    const cached = before(cache, store);
    const names = Array.from({ length: 8 }, (_, index) => `${index}.bin`);
    for (const name of names) {
      await saveBytes(store, name, 3 * MiB);
      await readBytes(cached, name);
      expect(await freeBytes(disk)).toBeGreaterThanOrEqual(16 * MiB);
    }
    expect(opened).toEqual(names);
    expect((await cache.entries()).length).toBeGreaterThan(0);
    await readBytes(cached, names.at(-1)!);
    expect(opened).toEqual(names);
    expect(cache.events).toEqual([]);
  });

  test("gives back what others have used up, and caches on when it is free again", async () => {
    const disk = await ownFileSystem("32m");
    const cache = await newCache(1024 * MiB, disk, 16 * MiB);
    const { store, opened } = counted(await fileStore());
    const cached = before(cache, store);
    for (const name of ["a", "b", "c"]) {
      await saveBytes(store, name, 4 * MiB);
      await readBytes(cached, name);
    }
    // Less than all of it helps, too.
    await writeFile(join(disk, "small"), Buffer.alloc(6 * MiB));
    await cached.check(never);
    expect(await freeBytes(disk)).toBeGreaterThanOrEqual(16 * MiB);
    expect(await cache.entries()).toHaveLength(2);
    // And so does all of it, if that is not enough.
    await writeFile(join(disk, "large"), Buffer.alloc(14 * MiB));
    await cached.check(never);
    expect(await cache.entries()).toEqual([]);
    await readBytes(cached, "a");
    expect(await cache.entries()).toEqual([]);
    await rm(join(disk, "large"));
    opened.length = 0;
    for (const _time of [1, 2]) await readBytes(cached, "a");
    expect(opened).toEqual(["a"]);
    expect(cache.events).toEqual([]);
  });

  test("removes old entries when the disk is full in the midst of a new one", async () => {
    const disk = await ownFileSystem("8m");
    const cache = await newCache(1024 * MiB, disk);
    const store = await fileStore();
    await saveBytes(store, "old", 2 * MiB);
    await saveBytes(store, "new", 2 * MiB);
    const full = join(disk, "full");
    const open: ArtifactStore["open"] = async (...args) => {
      const opened = await store.open(...args);
      if (args[1].filename === "old") return opened;
      const filling = async function* () {
        const content = await buffer(opened.body);
        yield content.subarray(0, MiB);
        await writeFile(full, Buffer.alloc(8 * MiB)).catch(() => undefined);
        yield content.subarray(MiB);
      };
      return { ...opened, body: Readable.from(filling(), { objectMode: false }) };
    };
    const cached = before(cache, altered(store, { open }));
    await readBytes(cached, "old");
    expect(await cache.entries()).toHaveLength(1);
    expect(Buffer.alloc(2 * MiB, "new").equals(await readBytes(cached, "new"))).toBe(true);
    expect(await cache.entries()).toEqual([]);
    expect((await cache.processFiles()).filter((path) => !path.endsWith("/alive"))).toEqual([]);
    // It needs no pause: others may have the disk, but calls can use what it gave back.
    expect(cache.events).toEqual([]);
  });

  test("rests when it has nothing to give back to a full disk", async () => {
    const disk = await ownFileSystem("4m");
    const cache = await newCache(1024 * MiB, disk);
    const store = await fileStore();
    await saveBytes(store, "a", 2 * MiB);
    const open: ArtifactStore["open"] = async (...args) => {
      const opened = await store.open(...args);
      await writeFile(join(disk, "full"), Buffer.alloc(4 * MiB)).catch(() => undefined);
      return opened;
    };
    const cached = before(cache, altered(store, { open }));
    for (const _time of [1, 2])
      expect(Buffer.alloc(2 * MiB, "a").equals(await readBytes(cached, "a"))).toBe(true);
    expect(cache.events).toEqual(["artifacts.cache_paused"]);
  });
});

describe("a cache of which most is in use", () => {
  test("keeps the rest when its removal would not suffice, and opens content once", async () => {
    const cache = await newCache(4 * MiB);
    const { store, opened } = counted(await fileStore());
    const cached = before(cache, store);
    const bodies = [];
    for (const [name, sizeBytes] of [
      ["a", MiB],
      ["b", MiB],
      ["c", MiB],
      ["d", 0.7 * MiB],
    ] as const) {
      await saveBytes(store, name, sizeBytes);
      bodies.push((await cached.open(scope, { filename: name, version: 0 }, never)).body);
    }
    await saveBytes(store, "unused", 0.1 * MiB);
    await readBytes(cached, "unused");
    await vi.waitFor(
      async () => expect(await cache.processFiles()).toHaveLength(1 + bodies.length),
      patience,
    );
    expect(await cache.entries()).toHaveLength(5);
    await saveBytes(store, "e", MiB);
    opened.length = 0;
    await readBytes(cached, "e");
    expect(opened).toEqual(["e"]);
    await readBytes(cached, "unused");
    expect(opened).toEqual(["e"]);
    for (const body of bodies) body.destroy();
    await vi.waitFor(async () => expect(await cache.processFiles()).toHaveLength(1), patience);
    for (const _time of [1, 2]) await readBytes(cached, "e");
    expect(opened).toEqual(["e", "e"]);
    expect(cache.events).toEqual([]);
  });
});

describe("a cache keeps nothing", () => {
  test("of a version that was replaced between its facts and its content", async () => {
    const cache = await newCache();
    const store = await fileStore();
    await saveText(store, scope, "a.txt", "replaced");
    const stat: ArtifactStore["stat"] = async (...args) => ({
      ...(await store.stat(...args)),
      etag: "that of the version before",
    });
    const cached = before(cache, altered(store, { stat }));
    for (const _time of [1, 2]) expect(await readText(cached, scope, "a.txt", 0)).toBe("replaced");
    expect(await cache.entries()).toEqual([]);
  });

  test.for([6, 8])("of content of 7 bytes that is announced with %i", async (sizeBytes) => {
    const cache = await newCache();
    const store = await fileStore();
    await saveText(store, scope, "a.txt", "content");
    const stat: ArtifactStore["stat"] = async (...args) => ({
      ...(await store.stat(...args)),
      sizeBytes,
    });
    const cached = before(cache, altered(store, { stat }));
    expect(await readText(cached, scope, "a.txt", 0)).toBe("content");
    expect(await cache.entries()).toEqual([]);
    expect(cache.events).toEqual([]);
  });

  test("that its receiver does not accept, and opens no content for it", async () => {
    const cache = await newCache();
    const { store, opened } = counted(await fileStore());
    const cached = before(cache, store);
    await saveText(store, scope, "a.txt", "content");
    const reference = { filename: "a.txt", version: 0 };
    const seen: number[] = [];
    const refuse = ({ sizeBytes }: { sizeBytes: number }) => {
      seen.push(sizeBytes);
      throw new Error("too large");
    };
    await expect(cached.open(scope, reference, never, refuse)).rejects.toThrow("too large");
    expect({ opened, seen, entries: await cache.entries() }).toEqual({
      opened: [],
      seen: [7],
      entries: [],
    });
    // Nor from an entry.
    await readText(cached, scope, "a.txt", 0);
    await expect(cached.open(scope, reference, never, refuse)).rejects.toThrow("too large");
    expect(await cache.processFiles()).toHaveLength(1);
    expect(cache.events).toEqual([]);
  });
});
