/**
 * The directory of a cache, which processes share.
 *
 * | path                     | mode | content                                                     |
 * |--------------------------|------|-------------------------------------------------------------|
 * | `entries/{xx}/{entry}`   | 0700 | complete files, named by `entry.ts`; `xx` begins their name |
 * | `processes/{id}/alive`   | 0711 | the socket of a process that lives                          |
 * | `processes/{id}/{id}`    | 0711 | a file that it fills, or a link to an entry that it uses    |
 *
 * A link keeps an entry that is in use. Sandboxes mount the entry by the link's path: others can
 * pass the directory, and cannot guess the name.
 */
import { chmod, link, lstat, mkdir, readdir, rename, rm, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import { newId } from "../../support/ids.ts";
import { isInUse, openLivenessSocket } from "../../support/files/liveness.ts";
import { errorCode } from "../failures.ts";
import { type Entry, entryPrefix } from "./entry.ts";

const passable = 0o711;
const [groupWrite, othersWrite] = [0o020, 0o002];
const ownDirectory = /^[0-9a-f]{24}$/;
const shardLength = 2;

/** A file of the cache. */
export interface CacheFile {
  readonly path: string;
  readonly inode: bigint;
  readonly sizeBytes: number;
  readonly usedMs: number;
  /** Whether a process uses it: then its removal frees nothing. */
  readonly isInUse: boolean;
}

/** The files of all processes. */
export interface CacheFiles {
  readonly entries: readonly CacheFile[];
  /** Files that are filled, and entries that were removed while they are in use. */
  readonly others: readonly CacheFile[];
}

/** An open cache. Disposing it removes this process's own files. */
export class CacheDirectory implements AsyncDisposable {
  readonly #base: string;
  readonly #own: string;
  readonly #owned: AsyncDisposable;

  private constructor(base: string, own: string, owned: AsyncDisposable) {
    this.#base = base;
    this.#own = own;
    this.#owned = owned;
  }

  /** Creates what is missing but for parents, and sweeps dead processes. Rejects with any error. */
  static async open(base: string): Promise<CacheDirectory> {
    await makeDirectory(base, passable);
    const { uid, mode } = await lstat(base);
    if (uid !== process.getuid?.() || (mode & (groupWrite | othersWrite)) !== 0)
      throw new Error(`${base} belongs to another user, or others can write to it`);
    await makeDirectory(join(base, "entries"), 0o700);
    await makeDirectory(join(base, "processes"), passable);
    await sweep(join(base, "processes"));
    const own = join(base, "processes", newId());
    await makeDirectory(own, passable);
    await using owned = new AsyncDisposableStack();
    owned.defer(() => rm(own, { recursive: true, force: true }));
    owned.use(await openLivenessSocket(own));
    return new CacheDirectory(base, own, owned.move());
  }

  /** A new path of this process. */
  newPath(): string {
    return join(this.#own, newId());
  }

  /** The name of an entry's file; undefined without one. */
  async find(entry: Entry): Promise<string | undefined> {
    const prefix = entryPrefix(entry);
    return (await namesIn(this.#shardOf(entry.key))).find((name) => name.startsWith(prefix));
  }

  /** Links an entry's file to a path of this process; false when it is gone. */
  async use(name: string, path: string): Promise<boolean> {
    return unlessAbsent(() => link(this.#pathOf(name), path));
  }

  /** Makes a complete file an entry, in place of older ones of its key. */
  async add(path: string, name: string, { key }: Entry): Promise<void> {
    await makeDirectory(this.#shardOf(name), 0o700);
    await chmod(path, 0o644);
    await rename(path, this.#pathOf(name));
    await this.drop(key, name);
  }

  /** Removes the entries of a key. */
  async drop(key: string, except?: string): Promise<void> {
    for (const name of await namesIn(this.#shardOf(key)))
      if (name.startsWith(`${key}.`) && name !== except)
        await unlessAbsent(() => unlink(this.#pathOf(name)));
  }

  /** Bytes that this process may still write to the file system. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#base);
    return bavail * bsize;
  }

  async files(): Promise<CacheFiles> {
    const entries = await filesBelow(join(this.#base, "entries"));
    const inodes = new Set(entries.map(({ inode }) => inode));
    const used = await filesBelow(join(this.#base, "processes"));
    const others = new Map(used.map((file) => [file.inode, file]));
    for (const inode of inodes) others.delete(inode);
    return { entries, others: [...others.values()] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }

  #shardOf(name: string): string {
    return join(this.#base, "entries", name.slice(0, shardLength));
  }

  #pathOf(name: string): string {
    return join(this.#shardOf(name), name);
  }
}

/** False when the file is gone; other errors pass. */
export async function unlessAbsent(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (errorCode(error) === "EEXIST") return;
    throw error;
  }
  // mkdir's mode is subject to the umask.
  await chmod(path, mode);
}

async function sweep(processes: string): Promise<void> {
  for (const name of await namesIn(processes)) {
    const path = join(processes, name);
    if (!ownDirectory.test(name) || (await isInUse(path))) continue;
    await rm(path, { recursive: true, force: true });
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Regular files of all directories in one. */
async function filesBelow(directory: string): Promise<readonly CacheFile[]> {
  const files: CacheFile[] = [];
  for (const name of await namesIn(directory)) {
    const inner = join(directory, name);
    const paths = (await namesIn(inner)).map((file) => join(inner, file));
    for (const file of await Promise.all(paths.map(fileAt))) if (file) files.push(file);
  }
  return files;
}

async function fileAt(path: string): Promise<CacheFile | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined);
  if (stats?.isFile() !== true) return undefined;
  const { ino, size, atimeMs, nlink } = stats;
  const usedMs = Number(atimeMs);
  return { path, inode: ino, sizeBytes: Number(size), usedMs, isInUse: nlink > 1n };
}
