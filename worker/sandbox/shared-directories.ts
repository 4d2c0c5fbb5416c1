/**
 * Makes directories of the host mountable for sandboxes that run as another user than the worker.
 *
 * With a sandbox uid of its own, bubblewrap can bind only what that uid can reach; below a private directory (mode
 * 0700) that is nothing. Such directories are copied to a place it can reach, and copied again when they changed.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, opendir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { NewId } from "../support/ids.ts";
import { firstPrivateDirectory, othersPass, othersRead } from "./reach.ts";
import { SandboxError, type SharedDirectory } from "./sandbox.ts";

const run = promisify(execFile);

/** Milliseconds a copy may take; an interpreter has some hundred megabytes. */
const copyTimeoutMs = 300_000;
/** Entries of one directory tree that are looked at for changes. */
const maxEntries = 100_000;

/** One copy, with the calls that use it. */
interface Copy {
  readonly path: string;
  readonly fingerprint: string;
  users: number;
  isCurrent: boolean;
}

/** Directories as sandboxes can mount them. Its owner disposes it after the last sandbox is gone. */
export class SharedDirectories implements AsyncDisposable {
  readonly #base: string;
  readonly #isForeign: boolean;
  readonly #newId: NewId;
  /** By source; absent until asked for, `"reachable"` when no copy is needed. */
  readonly #known = new Map<string, Copy | "reachable">();
  /** The latest look at each source: looks at one source take turns. */
  readonly #looks = new Map<string, Promise<Copy | undefined>>();

  /**
   * @param base directory for copies; the sandbox's uid can pass it
   * @param uid host uid of sandboxes, or undefined when it is the worker's own, which reaches everything it needs
   */
  constructor(base: string, uid: number | undefined, newId: NewId) {
    this.#base = base;
    this.#isForeign = uid !== undefined;
    this.#newId = newId;
  }

  /** A source to mount for `directory`, with its present content. The caller disposes it after the sandbox is gone. */
  async share(directory: string): Promise<SharedDirectory> {
    if (!this.#isForeign || this.#known.get(directory) === "reachable") return asItIs(directory);
    const look = (this.#looks.get(directory) ?? Promise.resolve(undefined))
      .catch(() => undefined)
      .then(() => this.#look(directory))
      .catch((error: unknown) => {
        if (error instanceof SandboxError) throw error;
        throw new SandboxError(`cannot share ${directory}`, { cause: error });
      });
    this.#looks.set(directory, look);
    const copy = await look;
    if (copy === undefined) return asItIs(directory);
    return {
      source: copy.path,
      [Symbol.asyncDispose]: async () => {
        copy.users--;
        await this.#removeUnused(copy);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#looks.values());
    await rm(this.#base, { recursive: true, force: true });
  }

  /** The current copy, counted as used once more; undefined when none is needed. */
  async #look(directory: string): Promise<Copy | undefined> {
    const known = this.#known.get(directory);
    if (known === "reachable") return undefined;
    // A link is mounted, and so has to be looked at and copied, as what it leads to.
    const target = await realpath(directory);
    const tree = await examine(target);
    const isReachable = tree.isReadable && (await firstPrivateDirectory(target)) === undefined;
    if (known === undefined && isReachable) {
      this.#known.set(directory, "reachable");
      return undefined;
    }
    let copy = known;
    if (copy?.fingerprint !== tree.fingerprint) {
      copy = {
        path: await this.#copy(target),
        fingerprint: tree.fingerprint,
        users: 0,
        isCurrent: true,
      };
      this.#known.set(directory, copy);
      if (known !== undefined) {
        known.isCurrent = false;
        await this.#removeUnused(known);
      }
    }
    copy.users++;
    return copy;
  }

  async #copy(directory: string): Promise<string> {
    const path = join(this.#base, this.#newId());
    const options = { env: {}, timeout: copyTimeoutMs };
    try {
      await mkdir(this.#base, { recursive: true });
      // mkdir's mode is subject to the umask.
      await chmod(this.#base, 0o711);
      await run("/usr/bin/cp", ["-a", "--reflink=auto", "--", directory, path], options);
      await run("/usr/bin/chmod", ["-R", "u=rwX,go=rX", "--", path], options);
      return path;
    } catch (error) {
      await rm(path, { recursive: true, force: true });
      throw new SandboxError(`cannot copy ${directory} to where sandboxes can read it`, {
        cause: error,
      });
    }
  }

  async #removeUnused(copy: Copy): Promise<void> {
    if (!copy.isCurrent && copy.users === 0) await rm(copy.path, { recursive: true, force: true });
  }
}

function asItIs(source: string): SharedDirectory {
  return { source, [Symbol.asyncDispose]: () => Promise.resolve() };
}

interface Tree {
  /** Whether another user can read all of it. */
  readonly isReadable: boolean;
  /** Changes whenever an entry appears, goes, or is written. */
  readonly fingerprint: string;
}

async function examine(directory: string): Promise<Tree> {
  const hash = createHash("sha256");
  let isReadable = true;
  let entries = 0;
  const visit = async (path: string): Promise<void> => {
    if (++entries > maxEntries)
      throw new SandboxError(`${directory} has more than ${maxEntries} entries`);
    const stats = await lstat(path);
    hash.update(`${path}\0${stats.mode}\0${stats.size}\0${stats.mtimeMs}\0${stats.ino}\n`);
    const needed = stats.isDirectory() ? othersRead | othersPass : othersRead;
    if ((stats.mode & needed) !== needed) isReadable = false;
    if (!stats.isDirectory()) return;
    const names: string[] = [];
    for await (const entry of await opendir(path)) names.push(entry.name);
    for (const name of names.sort()) await visit(join(path, name));
  };
  await visit(directory);
  return { isReadable, fingerprint: hash.digest("hex") };
}
