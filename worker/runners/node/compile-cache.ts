/**
 * Compiled code of Node modules: made by a run of each module, and mounted by its later calls.
 */
import { chmod, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { WorkDir } from "../../sandbox/work/work-dir.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Files of one module's cache; each module that it imports has up to three. */
const maxFiles = 4_000;
/** Bytes of one module's cache. */
const maxBytes = 64 * 1024 * 1024;
/** Milliseconds after a run that the host or the time limit ended, until the next one. */
export const retryAfterMs = 1_800_000;

/** Node's directories below NODE_COMPILE_CACHE: version, architecture, V8's flags, user. */
const versionDirectory = /^v[\w.-]{1,80}$/;
/** Node's names: CRC-32 of a module's path. */
const cacheFile = /^[0-9a-f]{1,8}$/;

/** Sandboxes read a cache as another user than the worker, with any umask of the worker. */
const readableFile = 0o644;
const readableDirectory = 0o755;

/** A module with all that decides how it is compiled. */
export interface Compilation {
  /** Path of its file below the directory of its code. */
  readonly module: string;
  /** What it imports is compiled with it: modules that see other packages have another variant. */
  readonly variant: string;
}

/** What caches are made with. */
export interface CompileCacheOptions<Of extends Compilation> {
  /** The file of a module; rejects where it is gone. */
  fingerprintOf(of: Of): Promise<string>;
  /** Directory for this process alone, which sandboxes can reach; its owner removes it. */
  readonly scratchDir: string;
  /** Modules with a cache. The least recently called ones lose theirs. */
  readonly maxModules: number;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly newId: NewId;
  readonly log: Logger;
  /**
   * Runs a module in a sandbox of its own, and gives what it left in `output/` to `take` when its
   * processes have ended. Rejects when the module could not run to its end.
   */
  run(of: Of, take: (left: WorkDir) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** A cache for one call. Dispose it after the sandbox. */
export interface CacheLease extends AsyncDisposable {
  readonly directory: string;
}

/** The cache that one run left. */
interface Filled {
  readonly directory: string;
  /** The calls that mount it, and the module until it has another one. The last removes it. */
  users: number;
}

/** One module. */
interface Module<Of extends Compilation> {
  readonly key: string;
  readonly of: Of;
  /** Of its file at the last call. */
  fingerprint: string;
  filled: Filled | undefined;
  /** On the monotonic clock. */
  retryAtMs: number;
}

/** Differs when the file at the path is another one. Rejects where there is none. */
export async function fileFingerprint(path: string): Promise<string> {
  const { ino, size, mtimeMs, ctimeMs } = await stat(path);
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

/** The same file would leave nothing again. */
class NothingLeftError extends Error {
  override readonly name = "NothingLeftError";
}

/**
 * The caches of Node modules, made one at a time in the background. Calls of a module without one
 * compile it. Node uses a cache only where it fits the source.
 */
export class CompileCaches<Of extends Compilation> implements AsyncDisposable {
  readonly #options: CompileCacheOptions<Of>;
  readonly #closing = new AbortController();
  readonly #modules: LRUCache<string, Module<Of>>;
  readonly #wanted = new Set<Module<Of>>();
  #making: Promise<void> | undefined;

  constructor(options: CompileCacheOptions<Of>) {
    this.#options = options;
    this.#modules = new LRUCache({
      max: options.maxModules,
      dispose: (module) => {
        this.#wanted.delete(module);
        void this.#release(module.filled);
      },
    });
  }

  /** Makes a cache of a module without one, or whose file changed since. */
  async want(of: Of): Promise<void> {
    await this.#find(of);
  }

  /** As {@link want}. The present cache, if any; the caller disposes it. */
  async lease(of: Of): Promise<CacheLease | undefined> {
    const filled = (await this.#find(of))?.filled;
    if (filled === undefined) return undefined;
    filled.users++;
    return {
      directory: filled.directory,
      [Symbol.asyncDispose]: () => this.#release(filled),
    };
  }

  /** Forgets caches. Calls that have one keep it. */
  drop(isUnwanted: (of: Of) => boolean): void {
    const keys = [...this.#modules].filter(([, { of }]) => isUnwanted(of)).map(([key]) => key);
    for (const key of keys) this.#modules.delete(key);
  }

  /** Aborts the run under way and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is shutting down"));
    await this.#making;
  }

  async #find(of: Of): Promise<Module<Of> | undefined> {
    const fingerprint = await this.#options.fingerprintOf(of).catch(() => undefined);
    if (fingerprint === undefined) return undefined;
    const key = `${of.variant}\0${of.module}`;
    const module = this.#modules.get(key) ?? this.#add(key, of);
    const isRetryDue = this.#options.clock.monotonicMs() >= module.retryAtMs;
    if (module.fingerprint !== fingerprint || isRetryDue) {
      module.fingerprint = fingerprint;
      module.retryAtMs = Infinity;
      this.#wanted.add(module);
      this.#making ??= this.#makeWanted();
    }
    return module;
  }

  #add(key: string, of: Of): Module<Of> {
    const module = { key, of, fingerprint: "", filled: undefined, retryAtMs: Infinity };
    this.#modules.set(key, module);
    return module;
  }

  async #makeWanted(): Promise<void> {
    for (const module of this.#wanted) {
      if (this.#closing.signal.aborted) break;
      this.#wanted.delete(module);
      await this.#make(module);
    }
    this.#making = undefined;
  }

  async #make(module: Module<Of>): Promise<void> {
    const { scratchDir, newId, log, clock, run } = this.#options;
    const { of } = module;
    const made: Filled = { directory: join(scratchDir, `compile-cache-${newId()}`), users: 1 };
    try {
      await run(of, (left) => keep(left, made.directory), this.#closing.signal);
      await this.#replace(module, made);
      logEvent(log, "module.compiled", { module: of.module });
    } catch (error) {
      await this.#release(made);
      if (!(error instanceof NothingLeftError))
        module.retryAtMs = clock.monotonicMs() + retryAfterMs;
      logEvent(log, "module.compile_failed", { module: of.module, err: error });
    }
  }

  /** From now on calls get `made`. The former cache goes with the last call that mounts it. */
  async #replace(module: Module<Of>, made: Filled): Promise<void> {
    const isKnown = this.#modules.peek(module.key) === module;
    const former = isKnown ? module.filled : made;
    if (isKnown) module.filled = made;
    await this.#release(former);
  }

  async #release(filled: Filled | undefined): Promise<void> {
    if (filled === undefined || --filled.users > 0) return;
    await rm(filled.directory, { recursive: true, force: true }).catch((error: unknown) =>
      logEvent(this.#options.log, "compiled_code.remove_failed", { err: error }),
    );
  }
}

/** Copies the cache in what a run left to a new directory. Throws NothingLeftError. */
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
