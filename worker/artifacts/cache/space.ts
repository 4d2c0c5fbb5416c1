/**
 * Keeps a cache within its bounds: removes the entries that were used least recently.
 */
import { unlink } from "node:fs/promises";
import { type CacheDirectory, type CacheFile, unlessAbsent } from "./directory.ts";

/** Entries of a cache: a bound of inodes, and of a scan's time. */
const maxEntries = 100_000;

/** What an eviction leaves of the bound, so that the next one is not due at once. */
const keptPart = 0.9;

/** What this process adds, of the bound, until it looks at what others have added. */
const unseenPart = 1 / 8;

/** Bounds of a cache. */
export interface CacheBounds {
  readonly maxBytes: number;
  /** Bytes that the cache leaves free on its file system. */
  readonly minFreeBytes: number;
}

/** The space of one cache. Each process that shares it keeps the same bounds. */
export class CacheSpace {
  readonly #directory: Pick<CacheDirectory, "files" | "freeBytes">;
  readonly #bounds: CacheBounds;
  /** Bytes of files that this process is filling. */
  #pendingBytes = 0;
  /** Bytes, and files, that may be added until the next scan. */
  #spareBytes = 0;
  #spareEntries = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(directory: Pick<CacheDirectory, "files" | "freeBytes">, bounds: CacheBounds) {
    this.#directory = directory;
    this.#bounds = bounds;
  }

  /**
   * Makes room for a file, until it is complete or given up: then the caller disposes it. Undefined
   * when what is in use, or what others have on the disk, leaves none; then no entry is removed.
   */
  reserve(bytes: number): Promise<Disposable | undefined> {
    return this.#inTurn(async () => {
      const missingBytes = await this.#missingBytes(bytes);
      const isWithin = bytes <= this.#spareBytes && this.#spareEntries > 0 && missingBytes <= 0;
      if (!isWithin && !(await this.#makeRoom(bytes, missingBytes))) return undefined;
      this.#spareBytes -= bytes;
      this.#spareEntries--;
      this.#pendingBytes += bytes;
      return { [Symbol.dispose]: () => void (this.#pendingBytes -= bytes) };
    });
  }

  /**
   * Removes entries until the file system has its free bytes again, and at least `leastBytes`.
   * False when there are too few; then all that are not in use are gone.
   */
  freeDisk(leastBytes = 0): Promise<boolean> {
    return this.#inTurn(async () => {
      const wantedBytes = Math.max(leastBytes, await this.#missingBytes(0));
      if (wantedBytes <= 0) return true;
      const { entries } = await this.#directory.files();
      return (await evict(unusedOf(entries), wantedBytes, 0)).bytes >= wantedBytes;
    });
  }

  /** One after the other: each sees what was reserved before. */
  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const acted = this.#last.then(act);
    this.#last = acted.catch(() => undefined);
    return acted;
  }

  /** Bytes that the file system lacks for a new file. What is partly filled counts twice. */
  async #missingBytes(bytes: number): Promise<number> {
    const neededBytes = this.#bounds.minFreeBytes + this.#pendingBytes + bytes;
    return neededBytes - (await this.#directory.freeBytes());
  }

  async #makeRoom(bytes: number, missingBytes: number): Promise<boolean> {
    const { maxBytes } = this.#bounds;
    const { entries, others } = await this.#directory.files();
    const totalBytes = sum(entries) + sum(others) + this.#pendingBytes;
    const excessBytes = Math.max(totalBytes + bytes - maxBytes, missingBytes);
    let evicted: Evicted = { bytes: 0, files: 0 };
    if (excessBytes > 0 || entries.length >= maxEntries) {
      const unused = unusedOf(entries);
      const usedFiles = entries.length - unused.length;
      if (sum(unused) < excessBytes || usedFiles >= maxEntries) return false;
      const leastBytes = excessBytes + maxBytes * (1 - keptPart);
      evicted = await evict(unused, leastBytes, entries.length - maxEntries * keptPart);
    }
    const freeBytes = maxBytes - totalBytes + evicted.bytes;
    this.#spareBytes = Math.min(freeBytes, Math.max(bytes, maxBytes * unseenPart));
    this.#spareEntries = Math.ceil((maxEntries - entries.length + evicted.files) * unseenPart);
    return true;
  }
}

interface Evicted {
  readonly bytes: number;
  readonly files: number;
}

/** Removes the oldest until so many bytes and files are gone, or all are. */
async function evict(
  unused: readonly CacheFile[],
  leastBytes: number,
  leastFiles: number,
): Promise<Evicted> {
  let [bytes, files] = [0, 0];
  for (const { path, sizeBytes } of unused.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (bytes >= leastBytes && files >= leastFiles) break;
    await unlessAbsent(() => unlink(path));
    bytes += sizeBytes;
    files++;
  }
  return { bytes, files };
}

/** The removal of the others would free nothing. */
function unusedOf(entries: readonly CacheFile[]): readonly CacheFile[] {
  return entries.filter(({ isInUse }) => !isInUse);
}

function sum(files: readonly CacheFile[]): number {
  return files.reduce((total, { sizeBytes }) => total + sizeBytes, 0);
}
