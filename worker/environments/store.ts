/**
 * The directory of environments (`PACKAGE_DIR`), shared by the workers of a host.
 *
 * | path                    | what                                                        |
 * |-------------------------|-------------------------------------------------------------|
 * | `<key>/`                | an environment, never changed                               |
 * | `building/<key>.<id>/`  | one that is being built, or removed                         |
 * | `workers/<id>/`         | liveness socket of a worker, and an empty file for each key it uses |
 * | `locks/<part of key>`   | held while an environment is built or removed               |
 */
import { chmod, mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { prepareWorkBase } from "../sandbox/work/work-base.ts";
import { TreeRemover } from "../sandbox/work/tree-remover.ts";
import {
  type LivenessSocket,
  isInUse,
  isStarting,
  openLivenessSocket,
} from "../support/files/liveness.ts";
import type { NewId } from "../support/ids.ts";
import { EnvironmentError, type Installation } from "./environments.ts";
import { type EnvironmentFacts, factsFile, readFacts } from "./facts.ts";
import { isEnvironmentKey } from "./key.ts";
import { lockFile } from "./lock.ts";

/** Sandboxes and other users of the host read environments and list no directory above them. */
const passable = 0o711;
/** Bits of a mode that let other users change a directory. */
const othersChange = 0o022;
/** Digits of a key that name its lock: so many keys share one, and lock files stay few. */
const lockDigits = 3;
/** Begins the name of a worker's directory that has no liveness socket yet. */
const startingPrefix = ".";

/** Options of an environment store. */
export interface StoreOptions {
  readonly directory: string;
  /** Host uid of sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly newId: NewId;
}

/** An environment with its place and its users. */
export interface StoredEnvironment extends Installation {
  readonly facts: EnvironmentFacts;
  /** Epoch milliseconds. */
  readonly usedAtMs: number;
}

/** Where a worker marks the keys that it uses. */
interface OwnMarks {
  readonly directory: string;
  readonly liveness: LivenessSocket;
}

/** The environments of a host, as one worker uses them. Disposing gives up its uses. */
export class EnvironmentStore implements AsyncDisposable {
  readonly #options: StoreOptions;
  readonly #own: OwnMarks | undefined;
  readonly #remover = new TreeRemover();

  private constructor(options: StoreOptions, own: OwnMarks | undefined) {
    this.#options = options;
    this.#own = own;
  }

  /** Makes the directory where it is missing; it may be read-only. Throws EnvironmentError. */
  static async open(options: StoreOptions): Promise<EnvironmentStore> {
    const { directory, uid, newId } = options;
    const id = newId();
    const own = join(directory, "workers", id);
    const starting = join(directory, "workers", `${startingPrefix}${id}`);
    try {
      await prepareWorkBase(directory, uid);
      await requireOwn(directory);
      for (const name of ["building", "workers", "locks"]) {
        await mkdir(join(directory, name), { recursive: true, mode: passable });
        await requireOwn(join(directory, name));
      }
      await chmod(join(directory, "building"), passable);
      // It gets its name when it listens: until then others would take it for that of a dead one.
      await mkdir(starting, { mode: 0o700 });
      const liveness = await openLivenessSocket(starting);
      await rename(starting, own);
      return new EnvironmentStore(options, { directory: own, liveness });
    } catch (error) {
      if (await isReadOnlyOwn(directory, error)) return new EnvironmentStore(options, undefined);
      throw new EnvironmentError("PACKAGE_DIR cannot be used", { cause: error });
    }
  }

  /** Whether it has only what an image was prepared with: nothing is built, marked or removed. */
  get isReadOnly(): boolean {
    return this.#own === undefined;
  }

  /** Marks the environment as used by this worker, and returns it where it is there. */
  async use(key: string): Promise<StoredEnvironment | undefined> {
    if (this.#own === undefined) return this.find(key);
    await writeFile(join(this.#own.directory, key), "");
    const found = await this.find(key);
    if (found === undefined) return undefined;
    const now = new Date();
    await utimes(join(found.dir, factsFile), now, now);
    return found;
  }

  /** Gives up the use of an environment. */
  async release(key: string): Promise<void> {
    if (this.#own !== undefined) await rm(join(this.#own.directory, key), { force: true });
  }

  /** An environment that is whole; undefined for any other. */
  async find(key: string): Promise<StoredEnvironment | undefined> {
    const dir = join(this.#options.directory, key);
    const read = await readFacts(dir);
    return read === undefined ? undefined : { dir, key, ...read };
  }

  /** All whole environments, those unused for longest first. */
  async list(): Promise<readonly StoredEnvironment[]> {
    const keys = (await readdir(this.#options.directory)).filter(isEnvironmentKey);
    const found = await Promise.all(keys.map((key) => this.find(key)));
    return found.filter((one) => one !== undefined).sort((a, b) => a.usedAtMs - b.usedAtMs);
  }

  /**
   * Removes what dead builders left, and environments that are not whole and that no live worker
   * uses. Waits for builds under way.
   */
  async removeDamaged(signal: AbortSignal): Promise<void> {
    const { directory } = this.#options;
    const left = await readdir(join(directory, "building"));
    for (const key of new Set(left.map((name) => name.split(".")[0] ?? ""))) {
      if (!isEnvironmentKey(key)) continue;
      await using _lock = await this.lock(key, signal);
      await this.#removeLeftovers(key);
    }
    for (const key of (await readdir(directory)).filter(isEnvironmentKey))
      if ((await this.find(key)) === undefined) await this.remove(key, signal);
  }

  /** The keys that this worker has marked. */
  async ownKeys(): Promise<readonly string[]> {
    return this.#own === undefined ? [] : keysIn(this.#own.directory);
  }

  /** The keys that live workers use. Removes the marks of dead ones. */
  async keysInUse(): Promise<ReadonlySet<string>> {
    const workers = join(this.#options.directory, "workers");
    const keys = new Set<string>();
    for (const name of await readdir(workers)) {
      const path = join(workers, name);
      const isUsed = name.startsWith(startingPrefix) ? isStarting : isInUse;
      if (path === this.#own?.directory || (await isUsed(path)))
        for (const key of await keysIn(path)) keys.add(key);
      else await this.#remover.remove(path);
    }
    return keys;
  }

  /**
   * Waits until no other process of the host builds or removes this environment. Throws
   * EnvironmentError where the directory is read-only.
   */
  async lock(key: string, signal: AbortSignal): Promise<AsyncDisposable> {
    if (this.isReadOnly) throw new EnvironmentError("PACKAGE_DIR is read-only and lacks them");
    return lockFile(join(this.#options.directory, "locks", key.slice(0, lockDigits)), signal);
  }

  /** A new directory to build in, without what dead builders left. The caller holds the lock. */
  async startBuild(key: string): Promise<string> {
    const { directory, newId } = this.#options;
    await this.#removeLeftovers(key);
    const path = join(directory, "building", `${key}.${newId()}`);
    await mkdir(path, { mode: 0o755 });
    await chmod(path, 0o755);
    return path;
  }

  /** Removes a directory of a build that failed. */
  discard(path: string): Promise<void> {
    return this.#remover.remove(path);
  }

  /** Puts a finished build into its place. The caller holds the lock. */
  async publish(key: string, path: string): Promise<StoredEnvironment> {
    const dir = join(this.#options.directory, key);
    // What is there is not whole: `use` would have found it.
    await this.#moveAway(key);
    await rename(path, dir);
    const published = await this.find(key);
    if (published === undefined) throw new EnvironmentError("an environment is not whole");
    return published;
  }

  /** Removes an environment that no live worker uses; false for one in use. */
  async remove(key: string, signal: AbortSignal): Promise<boolean> {
    await using _lock = await this.lock(key, signal);
    if ((await this.keysInUse()).has(key)) return false;
    const away = await this.#rename(key);
    if (away === undefined) return false;
    // A worker marks its use first, and looks afterwards: one that came meanwhile has marked it.
    if ((await this.keysInUse()).has(key)) {
      await rename(away, join(this.#options.directory, key));
      return false;
    }
    await this.#remover.remove(away);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#own === undefined) return;
    await this.#own.liveness[Symbol.asyncDispose]();
    await this.#remover.remove(this.#own.directory);
  }

  /** The caller holds the lock. */
  async #removeLeftovers(key: string): Promise<void> {
    const building = join(this.#options.directory, "building");
    for (const name of await readdir(building))
      if (name.startsWith(`${key}.`)) await this.#remover.remove(join(building, name));
  }

  async #moveAway(key: string): Promise<void> {
    const away = await this.#rename(key);
    if (away !== undefined) await this.#remover.remove(away);
  }

  async #rename(key: string): Promise<string | undefined> {
    const { directory, newId } = this.#options;
    const away = join(directory, "building", `${key}.${newId()}`);
    return rename(join(directory, key), away).then(
      () => away,
      (error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      },
    );
  }
}

/** Environments are code: nobody else may change them. */
async function requireOwn(directory: string): Promise<void> {
  const { mode, uid } = await stat(directory);
  if ((mode & othersChange) !== 0) throw new Error(`${directory} can be changed by others`);
  if (uid !== process.getuid?.()) throw new Error(`${directory} belongs to another user`);
}

/** Whether it could not be opened for this reason alone. */
async function isReadOnlyOwn(directory: string, error: unknown): Promise<boolean> {
  if ((error as NodeJS.ErrnoException).code !== "EROFS") return false;
  return requireOwn(directory).then(
    () => true,
    () => false,
  );
}

async function keysIn(directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch(() => [])).filter(isEnvironmentKey);
}
