/**
 * Compiled code of modules, made ahead by a run of each module and mounted by the calls that come
 * after it.
 */
import { chmod, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkDir } from "../sandbox/work/work-dir.ts";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Files of one module's cache; each module that it imports has up to three. */
const maxFiles = 4_000;
/** Bytes of one module's cache. */
const maxBytes = 64 * 1024 * 1024;
/**
 * Runs of a module, as long as its file stays the same, when the host or the time limit is why they
 * fail.
 */
export const maxTries = 8;
/** Milliseconds before the second of these runs; the pause doubles before each further one. */
export const firstPauseMs = 60_000;

/** Where Node puts its files below NODE_COMPILE_CACHE: version, architecture, V8's flags, user. */
const versionDirectory = /^v[\w.-]{1,80}$/;
/** Node's names: CRC-32 of a module's place. */
const cacheFile = /^[0-9a-f]{1,8}$/;

/** Sandboxes read a cache as another user than the worker, whatever the worker's umask. */
const readableFile = 0o644;
const readableDirectory = 0o755;

/** What caches are made with. */
export interface CompileCacheOptions {
  /** Directory of the modules on the host. */
  readonly toolsDir: string;
  /** Directory for this process alone, which sandboxes can reach; its owner removes it. */
  readonly scratchDir: string;
  /**
   * Modules with a cache, or about to have one: those that were not called for the longest time go.
   */
  readonly maxModules: number;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly newId: NewId;
  readonly log: Logger;
  /**
   * Runs a module in a sandbox of its own, and hands over what it left in `output/` when nothing of
   * it lives any more. Rejects when it could not be run to its end, which is tried again.
   */
  run(module: string, take: (left: WorkDir) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/**
 * The directory of a cache, for one call: it stays as it is until this is disposed, which is due
 * after the sandbox is gone.
 */
export interface CacheLease extends AsyncDisposable {
  readonly directory: string;
}

/** What one run left. */
interface Filled {
  readonly directory: string;
  /** Calls that mount it, and the cache as long as later calls get it. The last one removes it. */
  users: number;
}

/** What is known of a module. */
interface Cache {
  /** Of the module's file when the cache was last wanted. */
  fingerprint: string;
  filled: Filled | undefined;
  /** Runs for this fingerprint that failed and may succeed another time. */
  failures: number;
  /** When the next of them is due, on the monotonic clock. */
  retryAtMs: number;
}

/** Another run of the same file would end the same way. */
class NothingLeftError extends Error {
  override readonly name = "NothingLeftError";
}

/**
 * The caches of a language's modules. They are made one at a time, in the background; a module
 * without one is compiled by every call. What is in a cache is used for its own module only, and
 * only where Node finds that it fits the source.
 */
export class CompileCaches implements AsyncDisposable {
  readonly #options: CompileCacheOptions;
  readonly #closing = new AbortController();
  /** By module; the one that was called last is the last. */
  readonly #caches = new Map<string, Cache>();
  readonly #wanted = new Set<string>();
  #making: Promise<void> | undefined;

  constructor(options: CompileCacheOptions) {
    this.#options = options;
  }

  /** Has a cache made when the module has none, or when its file changed since. */
  async want(module: string): Promise<void> {
    await this.#find(module);
  }

  /**
   * The cache of a module, or undefined. The caller disposes it. Has one made as {@link want} does.
   */
  async lease(module: string): Promise<CacheLease | undefined> {
    const filled = (await this.#find(module))?.filled;
    if (filled === undefined) return undefined;
    filled.users++;
    return {
      directory: filled.directory,
      [Symbol.asyncDispose]: () => this.#giveBack(filled),
    };
  }

  /** Calls off the run under way and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is shutting down"));
    await this.#making;
  }

  async #find(module: string): Promise<Cache | undefined> {
    const fingerprint = await this.#fingerprint(module);
    if (fingerprint === undefined) return undefined;
    const cache = this.#cacheOf(module);
    if (cache.fingerprint !== fingerprint) {
      Object.assign(cache, { fingerprint, failures: 0 });
      this.#makeSoon(module, cache);
    } else if (this.#options.clock.monotonicMs() >= cache.retryAtMs) {
      this.#makeSoon(module, cache);
    }
    return cache;
  }

  /** Also notes that the module was called. */
  #cacheOf(module: string): Cache {
    const known = this.#caches.get(module);
    const cache = known ?? { fingerprint: "", filled: undefined, failures: 0, retryAtMs: Infinity };
    this.#caches.delete(module);
    this.#caches.set(module, cache);
    for (const [oldest, { filled }] of this.#caches) {
      if (this.#caches.size <= this.#options.maxModules) break;
      this.#caches.delete(oldest);
      this.#wanted.delete(oldest);
      if (filled !== undefined) void this.#giveBack(filled);
    }
    return cache;
  }

  async #fingerprint(module: string): Promise<string | undefined> {
    const stats = await stat(join(this.#options.toolsDir, module)).catch(() => undefined);
    return stats && `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
  }

  #makeSoon(module: string, cache: Cache): void {
    cache.retryAtMs = Infinity;
    this.#wanted.add(module);
    this.#making ??= this.#makeWanted();
  }

  async #makeWanted(): Promise<void> {
    for (const module of this.#wanted) {
      if (this.#closing.signal.aborted) break;
      this.#wanted.delete(module);
      const cache = this.#caches.get(module);
      if (cache !== undefined) await this.#make(module, cache);
    }
    this.#making = undefined;
  }

  async #make(module: string, cache: Cache): Promise<void> {
    const { scratchDir, newId, log, run } = this.#options;
    const made: Filled = { directory: join(scratchDir, `compile-cache-${newId()}`), users: 1 };
    try {
      await run(module, (left) => keep(left, made.directory), this.#closing.signal);
      await this.#replace(module, cache, made);
      logEvent(log, "module.compiled", { module });
    } catch (error) {
      await this.#giveBack(made);
      if (!(error instanceof NothingLeftError)) this.#retryLater(cache);
      logEvent(log, "module.compile_failed", { module, err: error });
    }
  }

  /** From now on calls get `made`. The former one goes with the last call that mounts it. */
  async #replace(module: string, cache: Cache, made: Filled): Promise<void> {
    const isKnown = this.#caches.get(module) === cache;
    const former = isKnown ? cache.filled : made;
    if (isKnown) cache.filled = made;
    if (former !== undefined) await this.#giveBack(former);
  }

  #retryLater(cache: Cache): void {
    cache.failures++;
    if (cache.failures >= maxTries) return;
    const pauseMs = firstPauseMs * 2 ** (cache.failures - 1);
    cache.retryAtMs = this.#options.clock.monotonicMs() + pauseMs;
  }

  async #giveBack(filled: Filled): Promise<void> {
    if (--filled.users > 0) return;
    await rm(filled.directory, { recursive: true, force: true }).catch((error: unknown) =>
      logEvent(this.#options.log, "compiled_code.remove_failed", { err: error }),
    );
  }
}

/** Puts what a run left into a new directory. Throws when it left nothing of a cache. */
async function keep(left: WorkDir, cache: string): Promise<void> {
  let [files, bytes, kept] = [0, 0, 0];
  for await (const { directory, name, handle, sizeBytes } of left.leftNested()) {
    await using file = handle;
    bytes += sizeBytes;
    if (++files > maxFiles || bytes > maxBytes) break;
    if (!versionDirectory.test(directory) || !cacheFile.test(name)) continue;
    if (++kept === 1) await makeReadable(cache);
    await makeReadable(join(cache, directory));
    const path = join(cache, directory, name);
    await writeFile(path, await file.readFile());
    await chmod(path, readableFile);
  }
  if (kept === 0) throw new NothingLeftError("the run left nothing of a cache");
}

async function makeReadable(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, readableDirectory);
}
