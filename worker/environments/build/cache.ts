/**
 * What installers keep of downloads, for later builds: `PACKAGE_DIR/cache`. Only builds that run no
 * code of packages get it, so that none leaves something for another one.
 */
import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import { TreeRemover } from "../../sandbox/work/tree-remover.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { InstallerError } from "../environments.ts";
import { tryLockFile } from "../lock.ts";

/** Where a build finds the cache. */
export const cacheInside = "/sandbox/cache";

/** Milliseconds between two measurements, and the least pause in durations of the last one. */
const measureMs = 1_000;
const pausePerMeasurement = 9;
/** What others can pass, so that sandboxes of another user can mount what is below. */
const passable = 0o711;
const removedPrefix = "removed.";
const never = new AbortController().signal;

/** What a cache is made with. */
export interface PackageCacheOptions {
  /** `PACKAGE_DIR`, which an EnvironmentStore has opened. */
  readonly directory: string;
  /** Host uid of sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  /** Size above which it is emptied after a build. */
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly log: EventLog<"warn">;
}

/** The cache of one installer while one build uses it. Disposing it may empty the whole cache. */
export interface LentCache extends AsyncDisposable {
  readonly path: string;
  /** Calls `end` when the cache has `bytes` more than it may keep, until the signal aborts. */
  watch(bytes: number, end: (limit: LimitReached) => void, signal: AbortSignal): Promise<void>;
}

/** The caches of all installers on this host. Nothing that fails here makes a build fail. */
export class PackageCache {
  readonly #options: PackageCacheOptions;
  readonly #directory: string;
  readonly #lockPath: string;
  readonly #remover = new TreeRemover();

  constructor(options: PackageCacheOptions) {
    this.#options = options;
    this.#directory = join(options.directory, "cache");
    this.#lockPath = join(options.directory, "locks", "cache");
  }

  /**
   * Lends the cache of an installer; undefined where it cannot be used, which the log says, and
   * while it is emptied. Rejects with the signal's reason.
   */
  async lend(installer: string, signal: AbortSignal): Promise<LentCache | undefined> {
    try {
      const lock = await tryLockFile(this.#lockPath, "shared", signal);
      if (lock === undefined) return undefined;
      await using opened = new AsyncDisposableStack();
      opened.defer(() => this.#emptyWhenLarge());
      opened.use(lock);
      const path = await this.#prepare(installer);
      const held = opened.move();
      return {
        path,
        watch: (bytes, end, until) => this.#watch(bytes, end, until),
        [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
      };
    } catch (error) {
      signal.throwIfAborted();
      logEvent(this.#options.log, "packages.cache_unusable", { err: error });
      return undefined;
    }
  }

  /** Bytes on the disk. */
  sizeBytes(): Promise<number> {
    return diskUsage(this.#directory, never);
  }

  /** Removes everything; false where a build of any worker uses it. */
  async empty(): Promise<boolean> {
    await using lock = await tryLockFile(this.#lockPath, "exclusive", never);
    if (lock === undefined) return false;
    // An installer takes what it finds for whole: nothing stays under its name in part.
    for (const name of await namesIn(this.#directory)) {
      if (name.startsWith(removedPrefix)) continue;
      const away = join(this.#directory, removedPrefix + this.#options.newId());
      await rename(join(this.#directory, name), away);
    }
    for (const name of await namesIn(this.#directory))
      await this.#remover.remove(join(this.#directory, name));
    return true;
  }

  async #prepare(installer: string): Promise<string> {
    const uid = this.#options.uid ?? process.getuid?.();
    const path = join(this.#directory, uid === undefined ? installer : `${installer}-${uid}`);
    await mkdir(this.#directory, { recursive: true });
    await chmod(this.#directory, passable);
    await mkdir(path, { recursive: true, mode: 0o700 });
    if (this.#options.uid !== undefined) await chown(path, this.#options.uid, this.#options.uid);
    return path;
  }

  async #watch(
    bytes: number,
    end: (limit: LimitReached) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, maxBytes } = this.#options;
    const bound = maxBytes + bytes;
    for (let pauseMs = measureMs; ;) {
      await clock.sleep(pauseMs, signal);
      const startedMs = clock.monotonicMs();
      const peak = await diskUsage(this.#directory, signal);
      if (peak > bound) return end({ limit: "diskBytes", bound, peak });
      pauseMs = Math.max(measureMs, pausePerMeasurement * (clock.monotonicMs() - startedMs));
    }
  }

  async #emptyWhenLarge(): Promise<void> {
    try {
      if ((await this.sizeBytes()) > this.#options.maxBytes) await this.empty();
    } catch (error) {
      logEvent(this.#options.log, "packages.cache_unusable", { err: error });
    }
  }
}

/**
 * Runs an installer with its cache, and again without one where that fails: then a build needs code
 * of packages, or the cache is of no use. `run` rejects with InstallerError for nothing else.
 */
export async function withCache<Result>(
  cache: PackageCache | undefined,
  installer: string,
  run: (lent: LentCache | undefined) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  {
    await using lent = await cache?.lend(installer, signal);
    if (lent !== undefined) {
      try {
        return await run(lent);
      } catch (error) {
        if (!(error instanceof InstallerError)) throw error;
      }
    }
  }
  return run(undefined);
}

/** 0 for a directory that is not there. Rejects when it is aborted. */
function diskUsage(directory: string, signal: AbortSignal): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const options = { env: {}, cwd: "/", signal };
  // du(1) fails for files that go meanwhile, and counts the others.
  execFile("/usr/bin/du", ["-s", "-B1", "--", directory], options, (error, stdout) => {
    if (signal.aborted) reject(error ?? (signal.reason as Error));
    else resolve(Number.parseInt(stdout) || 0);
  });
  return promise;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}
