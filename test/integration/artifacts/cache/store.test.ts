/**
 * The cache of artifacts, in front of the S3 store over HTTP.
 */
import { randomUUID } from "node:crypto";
import {
  appendFile,
  chmod,
  mkdir,
  open,
  readFile,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import {
  expectRefusal,
  never,
  readText,
  saveText,
  sourceOf,
  text,
} from "../../../conformance/artifacts/under-test.ts";
import { type TestCache, newCache } from "../../../support/cached-store.ts";
import { patience } from "../../../support/patience.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const MiB = 1024 ** 2;

function newScope(changes: Partial<ArtifactScope> = {}): ArtifactScope {
  return { root: `scope-${randomUUID()}`, userId: "user-42", sessionId: "web-1", ...changes };
}

/** A store of a worker's. Its disposal is the worker's end. */
function startWorker(cache: TestCache, identity?: string): ArtifactStore {
  const store = cache.before(s3Store(server().endpoint, bucket), identity);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** How often content is transferred meanwhile. */
async function transfers(act: () => Promise<unknown>): Promise<number> {
  const before = server().count("GetObject");
  await act();
  return server().count("GetObject") - before;
}

const latest = undefined;

describe("a version that was read before", () => {
  test("is read without a transfer, also by other workers", async () => {
    const cache = await newCache();
    const [first, second, scope] = [startWorker(cache), startWorker(cache), newScope()];
    await saveText(first, scope, "a.txt", "content");
    expect(await transfers(() => readText(first, scope, "a.txt"))).toBe(1);
    for (const store of [first, second, startWorker(cache)])
      for (const version of [latest, 0])
        expect(
          await transfers(async () =>
            expect(await readText(store, scope, "a.txt", version)).toBe("content"),
          ),
        ).toBe(0);
    expect(cache.events).toEqual([]);
  });

  test("is a file for the kernel, and leaves no link behind", async () => {
    const cache = await newCache();
    const [store, scope] = [startWorker(cache), newScope()];
    await saveText(store, scope, "a.txt", "content");
    const opened = await store.open(scope, { filename: "a.txt", version: 0 }, never);
    expect(await readFile(opened.sharedPath!, "utf8")).toBe("content");
    // Sandboxes mount it as another user.
    expect((await stat(opened.sharedPath!)).mode & 0o777).toBe(0o644);
    expect((await stat(join(cache.directory, "entries"))).mode & 0o777).toBe(0o700);
    const way = [cache.directory, join(cache.directory, "processes"), dirname(opened.sharedPath!)];
    for (const directory of way) expect((await stat(directory)).mode & 0o777).toBe(0o711);
    expect(await cache.processFiles()).toContain(opened.sharedPath);
    expect((await buffer(opened.body)).toString()).toBe("content");
    await vi.waitFor(
      async () => expect(await cache.processFiles()).not.toContain(opened.sharedPath),
      patience,
    );
  });

  test("is asked for in one request without a cache, facts and content together", async () => {
    await using store = s3Store(server().endpoint, bucket);
    const scope = newScope();
    await saveText(store, scope, "a.txt", "content");
    const before = server().count("HeadObject");
    const reference = { filename: "a.txt", version: 0 };
    const count = await transfers(async () => {
      const { body } = await store.open(scope, reference, never, async () => undefined);
      expect((await buffer(body)).toString()).toBe("content");
    });
    expect([count, server().count("HeadObject") - before]).toEqual([1, 0]);
  });

  test("is transferred once for all that ask at once", async () => {
    const [store, scope] = [startWorker(await newCache()), newScope()];
    await saveText(store, scope, "a.txt", "content");
    const count = await transfers(() =>
      Promise.all(Array.from({ length: 20 }, () => readText(store, scope, "a.txt"))),
    );
    expect(count).toBe(1);
  });

  test("is transferred anew when all that asked have given up", async () => {
    const [store, scope, abort] = [
      startWorker(await newCache()),
      newScope(),
      new AbortController(),
    ];
    await store.save(scope, "a.bin", sourceOf(Buffer.alloc(MiB, 1)), text, never);
    const reference = { filename: "a.bin", version: 0 };
    const before = server().count("GetObject");
    server().fault({ operation: "GetObject", fault: { kind: "stall" } });
    const first = store.open(scope, reference, abort.signal);
    first.catch(() => undefined);
    await vi.waitFor(() => expect(server().count("GetObject")).toBe(before + 1), patience);
    abort.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    const { body } = await store.open(scope, reference, never);
    expect(await buffer(body)).toHaveLength(MiB);
  });
});

describe("no call is given", () => {
  test(
    "what another scope, user, session, version or store has",
    { tags: "promise-C8" },
    async () => {
      const cache = await newCache();
      const [store, root] = [startWorker(cache), `scope-${randomUUID()}`];
      const owner = newScope({ root });
      await saveText(store, owner, "a.txt", "secret");
      await saveText(store, owner, "user:a.txt", "secret");
      for (const name of ["a.txt", "user:a.txt"]) await readText(store, owner, name);
      for (const other of [
        newScope(),
        newScope({ root, userId: "user-43" }),
        newScope({ root, userId: "user-44", sessionId: "user-42" }),
      ])
        for (const filename of ["a.txt", "user:a.txt"]) {
          await expectRefusal(store.open(other, { filename, version: 0 }, never), "not-found");
          await saveText(store, other, filename, "own");
          expect(await readText(store, other, filename)).toBe("own");
        }
      await expectRefusal(
        store.open(
          newScope({ root, sessionId: "web-2" }),
          { filename: "a.txt", version: 0 },
          never,
        ),
        "not-found",
      );
      expect(await readText(store, owner, "a.txt")).toBe("secret");
      const elsewhere = startWorker(cache, "another store");
      expect(await transfers(() => readText(elsewhere, owner, "a.txt"))).toBe(1);
    },
  );

  test(
    "a version that was deleted, or what had its number before",
    { tags: "promise-C8" },
    async () => {
      const cache = await newCache();
      const [store, other, scope] = [startWorker(cache), startWorker(cache), newScope()];
      const saved = await saveText(store, scope, "a.txt", "old");
      for (const each of [store, other]) await readText(each, scope, "a.txt");
      await other.deleteVersion(scope, "a.txt", saved, never);
      expect(await cache.entries()).toEqual([]);
      for (const each of [store, other])
        await expectRefusal(
          each.open(scope, { filename: "a.txt", version: 0 }, never),
          "not-found",
        );
      // Past the cache, as an agent does.
      await using agent = s3Store(server().endpoint, bucket);
      await saveText(agent, scope, "a.txt", "new");
      expect(await readText(store, scope, "a.txt")).toBe("new");
      const replaced = await agent.stat(scope, { filename: "a.txt", version: 0 }, never);
      server().bucket(bucket).objects.clear();
      await saveText(agent, scope, "a.txt", "NEW");
      expect((await agent.stat(scope, { filename: "a.txt", version: 0 }, never)).etag).not.toBe(
        replaced.etag,
      );
      expect(await readText(store, scope, "a.txt", 0)).toBe("NEW");
      expect(await cache.entries()).toHaveLength(1);
    },
  );
});

describe("a full cache", () => {
  test("gives up what was used least recently", async () => {
    const cache = await newCache(10 * MiB);
    const [store, scope] = [startWorker(cache), newScope()];
    const names = Array.from({ length: 9 }, (_, index) => `${index}.bin`);
    for (const [index, name] of names.entries()) {
      await store.save(scope, name, sourceOf(Buffer.alloc(MiB, index)), text, never);
      await readBytes(store, scope, name);
      // Times of use on disk are not told apart within a moment.
      for (const path of await cache.entries()) {
        const { atimeMs, mtimeMs } = await stat(path);
        await utimes(path, atimeMs / 1000 - 100, mtimeMs / 1000);
      }
    }
    const worker = startWorker(cache);
    await readBytes(worker, scope, "0.bin");
    await store.save(scope, "large", sourceOf(Buffer.alloc(2.4 * MiB)), text, never);
    await readBytes(worker, scope, "large");
    const sizes = await Promise.all(
      (await cache.entries()).map(async (path) => (await stat(path)).size),
    );
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(10 * MiB);
    const counts = [];
    for (const name of ["0.bin", "8.bin", "1.bin"])
      counts.push(await transfers(() => readBytes(worker, scope, name)));
    expect(counts).toEqual([0, 0, 1]);
    expect(cache.events).toEqual([]);
  });

  test("keeps no artifact of more than a quarter of it", async () => {
    const cache = await newCache(4 * MiB);
    const [store, scope] = [startWorker(cache), newScope()];
    await store.save(scope, "large", sourceOf(Buffer.alloc(MiB + 1)), text, never);
    for (const _time of [1, 2])
      expect(await transfers(() => readBytes(store, scope, "large"))).toBe(1);
    expect(await cache.entries()).toEqual([]);
  });

  test("leaves what is in use where it is, and reads on from the store", async () => {
    const cache = await newCache(4 * MiB);
    const [store, scope] = [startWorker(cache), newScope()];
    const opened = [];
    for (const [index, name] of ["a", "b", "c", "d", "e", "f"].entries()) {
      await store.save(scope, name, sourceOf(Buffer.alloc(MiB, index)), text, never);
      opened.push(await store.open(scope, { filename: name, version: 0 }, never));
    }
    const shared = opened.filter(({ sharedPath }) => sharedPath !== undefined);
    expect(shared.length).toBeGreaterThan(1);
    expect(shared.length).toBeLessThanOrEqual(4);
    for (const [index, { body }] of opened.entries())
      expect(Buffer.alloc(MiB, index).equals(await buffer(body))).toBe(true);
    expect(cache.events).toEqual([]);
  });
});

describe("a cache with what a crash left", () => {
  test("drops damaged content, and content of another length", async () => {
    for (const damage of [
      (path: string) => appendFile(path, "x"),
      async (path: string) => {
        await using file = await open(path, "r+");
        await file.write("X");
      },
      (path: string) => writeFile(path, ""),
    ]) {
      const cache = await newCache();
      const scope = newScope();
      await using first = startWorker(cache);
      await saveText(first, scope, "a.txt", "content");
      await readText(first, scope, "a.txt");
      const [path = ""] = await cache.entries();
      await damage(path);
      const second = startWorker(cache);
      expect(
        await transfers(async () => expect(await readText(second, scope, "a.txt")).toBe("content")),
      ).toBe(1);
      expect(cache.events).toEqual(["artifacts.cache_damaged"]);
      expect(await readFile(path, "utf8")).toBe("content");
    }
  });

  test("sweeps files of dead processes, and none of living ones", async () => {
    const cache = await newCache();
    const [living, scope] = [startWorker(cache), newScope()];
    await saveText(living, scope, "a.txt", "content");
    const opened = await living.open(scope, { filename: "a.txt", version: 0 }, never);
    const dead = join(cache.directory, "processes", "0".repeat(24));
    await mkdir(dead);
    await writeFile(join(dead, "partial"), "half of someth");
    await utimes(dead, 0, 0);
    await startWorker(cache).check(never);
    expect(await cache.processFiles()).not.toContain(join(dead, "partial"));
    expect(await readFile(opened.sharedPath!, "utf8")).toBe("content");
    opened.body.destroy();
  });
});

describe("a cache that does not work costs no call", () => {
  const broken: Readonly<Record<string, (cache: TestCache) => Promise<void>>> = {
    "a directory that others can write to": async ({ directory }) => {
      await mkdir(directory);
      await chmod(directory, 0o777);
    },
    "a directory whose parent is missing": ({ directory }) =>
      rm(join(directory, ".."), { recursive: true }),
    "a file in the place of the directory": ({ directory }) => writeFile(directory, ""),
  };
  test.for(Object.entries(broken))("with %s", async ([, breakIt]) => {
    const cache = await newCache();
    await breakIt(cache);
    const [store, scope] = [startWorker(cache), newScope()];
    await saveText(store, scope, "a.txt", "content");
    for (const _time of [1, 2]) expect(await readText(store, scope, "a.txt")).toBe("content");
    expect(cache.events).toEqual(["artifacts.cache_paused"]);
  });

  test("on a full disk", async () => {
    const cache = await newCache(1024 * MiB, await ownFileSystem("2m"));
    const [store, scope] = [startWorker(cache), newScope()];
    const content = Buffer.alloc(3 * MiB, 7);
    await store.save(scope, "a.bin", sourceOf(content), text, never);
    for (const _time of [1, 2])
      expect(
        await transfers(async () =>
          expect(content.equals(await readBytes(store, scope, "a.bin"))).toBe(true),
        ),
      ).toBe(1);
    expect(cache.events).toEqual([]);
    expect(await cache.entries()).toEqual([]);
    const files = await cache.processFiles();
    expect(files.map((path) => path.split("/").at(-1))).toEqual(["alive"]);
  });

  test("and tells what the store refuses", async () => {
    const [store, scope] = [startWorker(await newCache()), newScope()];
    await saveText(store, scope, "a.txt", "content");
    const error = { kind: "error", status: 403, code: "AccessDenied" } as const;
    using _fault = server().fault({ operation: "GetObject", fault: error, times: 10 });
    await expectRefusal(
      store.open(scope, { filename: "a.txt", version: 0 }, never),
      "unavailable",
      "denies access",
    );
  });
});

async function readBytes(store: ArtifactStore, scope: ArtifactScope, filename: string) {
  const { body } = await store.open(scope, { filename, version: latest }, never);
  return buffer(body);
}
