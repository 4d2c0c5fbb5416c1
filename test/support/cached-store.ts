/**
 * Stores behind a cache in a temporary directory.
 */
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, onTestFinished } from "vitest";
import { createCachedStore } from "../../worker/artifacts/cache/store.ts";
import type { ArtifactStore } from "../../worker/artifacts/store.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";

/** A cache of tests. */
export interface TestCache {
  readonly directory: string;
  /** Names of log events of its stores. */
  readonly events: readonly string[];
  /** Puts the cache before a store. The caller disposes the result, and with it the store. */
  before(store: ArtifactStore, identity?: string): ArtifactStore;
  /** Paths of all complete files. */
  entries(): Promise<readonly string[]>;
  /** Paths of all files of processes, with sockets. */
  processFiles(): Promise<readonly string[]>;
}

/** Makes a cache that is removed after the test. */
export async function newCache(
  maxBytes = 1024 ** 3,
  base = tmpdir(),
  minFreeBytes = 0,
): Promise<TestCache> {
  const parent = await mkdtemp(join(base, "str-cache-"));
  await chmod(parent, 0o755);
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  const directory = join(parent, "cache");
  const events: string[] = [];
  const lines = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split("\n").filter(Boolean))
        events.push((JSON.parse(line) as { event: string }).event);
      done();
    },
  });
  const log = createLogger("debug", lines);
  return {
    directory,
    events,
    before: (store, identity = "test") =>
      createCachedStore({
        store,
        identity: [identity],
        config: { directory, maxBytes, minFreeBytes },
        clock: systemClock,
        log,
      }),
    entries: () => filesBelow(join(directory, "entries")),
    processFiles: () => filesBelow(join(directory, "processes")),
  };
}

/** The same, and the test fails when the cache gives up. */
export async function workingCache(): Promise<TestCache> {
  const cache = await newCache();
  onTestFinished(() => expect(cache.events).toEqual([]));
  return cache;
}

async function filesBelow(directory: string): Promise<readonly string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  return found
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted();
}
