/**
 * The caches of installers on a host: lent, shared, bounded and emptied.
 */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type LentCache,
  PackageCache,
  withCache,
} from "../../../worker/environments/build/cache.ts";
import { EnvironmentError, InstallerError } from "../../../worker/environments/environments.ts";
import type { LimitReached } from "../../../worker/protocol/resource-limits.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { isRoot } from "../../support/is-root.ts";

const MiB = 1024 * 1024;
const never = new AbortController().signal;

/** A cache below a new directory, and what it logs. */
async function openCache(maxBytes = MiB) {
  const directory = await mkdtemp(join(tmpdir(), "str-cache-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, "locks"));
  const events: unknown[] = [];
  const log = { warn: (facts: object) => void events.push((facts as { event: string }).event) };
  const options = { directory, maxBytes, clock: systemClock, newId, log };
  const uid = isRoot ? 60_001 : undefined;
  const open = (): PackageCache => new PackageCache({ ...options, uid });
  return { cache: open(), other: open(), events, directory: join(directory, "cache") };
}

async function fill(path: string, bytes: number): Promise<void> {
  await writeFile(join(path, "archive"), Buffer.alloc(bytes));
}

describe("the cache of packages", () => {
  test("is of the sandboxes' user alone, and lent to several builds", async () => {
    const { cache, other } = await openCache();
    await using one = await cache.lend("uv", never);
    await using two = await other.lend("uv", never);
    expect(two?.path).toBe(one!.path);
    const { mode, uid } = await stat(one!.path);
    expect(mode & 0o777).toBe(0o700);
    expect(uid).toBe(isRoot ? 60_001 : process.getuid!());
  });

  test("is emptied when it is too large, after the last build that uses it", async () => {
    const { cache, other, directory, events } = await openCache();
    {
      await using one = await cache.lend("uv", never);
      {
        await using two = await other.lend("pip", never);
        await fill(two!.path, 2 * MiB);
      }
      expect(await readdir(directory)).toHaveLength(2);
      await fill(one!.path, 10);
    }
    expect(await readdir(directory)).toEqual([]);
    {
      await using again = await cache.lend("uv", never);
      await fill(again!.path, MiB / 2);
    }
    expect(await cache.sizeBytes()).toBeGreaterThan(MiB / 2);
    expect(events).toEqual([]);
  });

  test("is emptied on request but while a build uses it, with what an ended process left", async () => {
    const { cache, directory } = await openCache();
    {
      await using _lent = await cache.lend("npm", never);
      expect(await cache.empty()).toBe(false);
    }
    await mkdir(join(directory, "removed.half"));
    expect(await cache.empty()).toBe(true);
    expect(await readdir(directory)).toEqual([]);
  });

  test("ends a build that makes it larger than it may be", async () => {
    const { cache } = await openCache();
    await using lent = await cache.lend("uv", never);
    await fill(lent!.path, 4 * MiB);
    const limit = Promise.withResolvers<LimitReached>();
    await lent!.watch(2 * MiB, limit.resolve, never);
    expect(await limit.promise).toMatchObject({ limit: "diskBytes", bound: 3 * MiB });
  });

  test("is done without where it cannot be used, which the log says", async () => {
    const { cache, directory, events } = await openCache();
    await writeFile(directory, "in the way");
    expect(await cache.lend("uv", never)).toBeUndefined();
    expect(events).toContain("packages.cache_unusable");
  });
});

describe("an installation with a cache", () => {
  /** The caches that attempts ran with, the first of which fails. */
  async function attempts(problem: Error): Promise<readonly boolean[]> {
    const { cache } = await openCache();
    const ran: boolean[] = [];
    const run = async (lent: LentCache | undefined): Promise<void> => {
      ran.push(lent !== undefined);
      if (lent !== undefined) throw problem;
    };
    await withCache(cache, "uv", run, never).catch(() => undefined);
    return ran;
  }

  test("is done again without it when the installer fails", async () => {
    expect(await attempts(new InstallerError("uv ended with 1"))).toEqual([true, false]);
  });

  test("is not done again when its time is up", async () => {
    expect(await attempts(new EnvironmentError("uv took more than 1 s"))).toEqual([true]);
  });
});
