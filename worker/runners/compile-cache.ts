/**
 * Compiled code of modules, made ahead by a run of each module and mounted by the calls that come after it.
 */
import { chmod, mkdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkDir } from "../sandbox/work-dir.ts";
import type { NewId } from "../support/ids.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Files of one module's cache; each module that it imports has up to three. */
const maxFiles = 4_000;
/** Bytes of one module's cache. */
const maxBytes = 64 * 1024 * 1024;

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
  readonly newId: NewId;
  readonly log: Logger;
  /** Runs a module in a sandbox of its own, and hands over what it left in `output/` when nothing of it lives any more. */
  run(module: string, take: (left: WorkDir) => Promise<void>, signal: AbortSignal): Promise<void>;
}

interface Cache {
  readonly directory: string;
  /** Of the module's file when the cache was last wanted. */
  fingerprint: string;
  /** Whether there is anything in the directory; from then on there always is. */
  isFilled: boolean;
}

/**
 * The caches of a language's modules. They are made one at a time, in the background; a module without one is compiled
 * by every call. What is in a cache is used for its own module only, and only where Node finds that it fits the source.
 */
export class CompileCaches implements AsyncDisposable {
  readonly #options: CompileCacheOptions;
  readonly #closing = new AbortController();
  /** By module. */
  readonly #caches = new Map<string, Cache>();
  readonly #wanted = new Set<string>();
  #making: Promise<void> | undefined;

  constructor(options: CompileCacheOptions) {
    this.#options = options;
  }

  /** The cache of a module, or undefined. Has one made when there is none, or when the module's file changed since. */
  async find(module: string): Promise<string | undefined> {
    const fingerprint = await this.#fingerprint(module);
    if (fingerprint === undefined) return undefined;
    const cache = this.#cacheOf(module);
    if (cache.fingerprint !== fingerprint) {
      cache.fingerprint = fingerprint;
      this.#wanted.add(module);
      this.#making ??= this.#makeWanted();
    }
    return cache.isFilled ? cache.directory : undefined;
  }

  /** Calls off the run under way and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is shutting down"));
    await this.#making;
  }

  #cacheOf(module: string): Cache {
    let cache = this.#caches.get(module);
    if (cache === undefined) {
      const { scratchDir, newId } = this.#options;
      const directory = join(scratchDir, `compile-cache-${newId()}`);
      cache = { directory, fingerprint: "", isFilled: false };
      this.#caches.set(module, cache);
    }
    return cache;
  }

  async #fingerprint(module: string): Promise<string | undefined> {
    const stats = await stat(join(this.#options.toolsDir, module)).catch(() => undefined);
    return stats && `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
  }

  async #makeWanted(): Promise<void> {
    for (const module of this.#wanted) {
      if (this.#closing.signal.aborted) break;
      this.#wanted.delete(module);
      await this.#make(module);
    }
    this.#making = undefined;
  }

  async #make(module: string): Promise<void> {
    const { log, run } = this.#options;
    const cache = this.#cacheOf(module);
    try {
      await run(module, (left) => keep(left, cache.directory), this.#closing.signal);
      cache.isFilled = true;
      log.debug({ module }, "module compiled ahead");
    } catch (error) {
      log.debug({ module, err: error }, "module could not be compiled ahead");
    }
  }
}

/** Puts what a run left into `cache`, beside what earlier runs left. Throws when it left nothing of a cache. */
async function keep(left: WorkDir, cache: string): Promise<void> {
  let [files, bytes, kept] = [0, 0, 0];
  for await (const { directory, name, handle, sizeBytes } of left.leftNested()) {
    await using file = handle;
    bytes += sizeBytes;
    if (++files > maxFiles || bytes > maxBytes) break;
    if (!versionDirectory.test(directory) || !cacheFile.test(name)) continue;
    if (++kept === 1) await makeReadable(cache);
    await makeReadable(join(cache, directory));
    // A call may be reading the file of before.
    const temporary = join(cache, directory, `${name}.new`);
    await writeFile(temporary, await file.readFile());
    await chmod(temporary, readableFile);
    await rename(temporary, join(cache, directory, name));
  }
  if (kept === 0) throw new Error("the run left nothing of a cache");
}

async function makeReadable(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, readableDirectory);
}
