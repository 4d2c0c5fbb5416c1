/**
 * Keeps a cache within its bound: removes the entries that were used least recently.
 */
import { unlink } from "node:fs/promises";
import { type CacheDirectory, type CacheFile, unlessAbsent } from "./directory.ts";

/** Entries of a cache: a bound of inodes, and of a scan's time. */
const maxEntries = 100_000;

/** What an eviction leaves of the bound, so that the next one is not due at once. */
const keptPart = 0.9;

/** What this process adds, of the bound, until it looks at what others have added. */
const unseenPart = 1 / 8;

/** The space of one cache. Each process that shares it keeps the same bound. */
export class CacheSpace {
  readonly #directory: Pick<CacheDirectory, "files">;
  readonly #maxBytes: number;
  /** Bytes of files that this process is filling. */
  #pendingBytes = 0;
  /** Bytes, and files, that may be added until the next scan. */
  #spareBytes = 0;
  #spareEntries = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(directory: Pick<CacheDirectory, "files">, maxBytes: number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  /**
   * Makes room for a file, until it is complete or given up: then the caller disposes it. Undefined
   * when what is in use leaves none.
   */
  async reserve(bytes: number): Promise<Disposable | undefined> {
    // One after the other: each sees what was reserved before.
    const reserved = this.#last.then(() => this.#reserve(bytes));
    this.#last = reserved.catch(() => undefined);
    return reserved;
  }

  async #reserve(bytes: number): Promise<Disposable | undefined> {
    if (bytes > this.#spareBytes || this.#spareEntries <= 0) await this.#evict(bytes);
    if (bytes > this.#spareBytes) return undefined;
    this.#spareBytes -= bytes;
    this.#spareEntries--;
    this.#pendingBytes += bytes;
    return { [Symbol.dispose]: () => void (this.#pendingBytes -= bytes) };
  }

  async #evict(neededBytes: number): Promise<void> {
    const { entries, others } = await this.#directory.files();
    let totalBytes = sum(entries) + sum(others) + this.#pendingBytes;
    let count = entries.length;
    if (totalBytes + neededBytes > this.#maxBytes || count >= maxEntries) {
      const unused = entries.filter(({ isInUse }) => !isInUse);
      const oldestFirst = unused.toSorted((a, b) => a.usedMs - b.usedMs);
      for (const { path, sizeBytes } of oldestFirst) {
        const isEnough = totalBytes + neededBytes <= this.#maxBytes * keptPart;
        if (isEnough && count <= maxEntries * keptPart) break;
        await unlessAbsent(() => unlink(path));
        totalBytes -= sizeBytes;
        count--;
      }
    }
    const freeBytes = this.#maxBytes - totalBytes;
    this.#spareBytes = Math.min(freeBytes, Math.max(neededBytes, this.#maxBytes * unseenPart));
    this.#spareEntries = Math.ceil((maxEntries - count) * unseenPart);
  }
}

function sum(files: readonly CacheFile[]): number {
  return files.reduce((total, { sizeBytes }) => total + sizeBytes, 0);
}
