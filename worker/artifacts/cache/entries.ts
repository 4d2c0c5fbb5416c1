/**
 * Entries of a cache: filled, verified, opened.
 */
import { type FileHandle, open, unlink } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32 } from "node:zlib";
import { LRUCache } from "lru-cache";
import { isDiskFull } from "../failures.ts";
import type { OpenedArtifact } from "../store.ts";
import { CacheDirectory, unlessAbsent } from "./directory.ts";
import { type Entry, crcOf, entryName } from "./entry.ts";
import { type CacheBounds, CacheSpace } from "./space.ts";

/** Entries that this process remembers as verified; it verifies others again. */
const maxVerified = 10_000;

/** Milliseconds between two notes of the use of an entry. */
const noteUseMs = 60_000;

/** Bytes that are read at a time for a checksum. */
const chunkBytes = 1024 * 1024;

/** An entry that this process has filled or verified. */
interface Verified {
  readonly name: string;
  notedMs: number;
}

/** What an open entry has of an opened artifact. */
export type OpenedEntry = Required<Pick<OpenedArtifact, "body" | "file" | "sharedPath">>;

/** The entries of one directory. Its owner disposes it after the last file is closed. */
export class Entries implements AsyncDisposable {
  readonly #directory: CacheDirectory;
  readonly #space: CacheSpace;
  readonly #verified = new LRUCache<string, Verified>({ max: maxVerified });

  private constructor(directory: CacheDirectory, bounds: CacheBounds) {
    this.#directory = directory;
    this.#space = new CacheSpace(directory, bounds);
  }

  /** Rejects with the system's error. */
  static async open(directory: string, bounds: CacheBounds): Promise<Entries> {
    return new Entries(await CacheDirectory.open(directory), bounds);
  }

  /** Opens an entry that this process has filled or verified; undefined without one. */
  async openVerified(entry: Entry): Promise<OpenedEntry | undefined> {
    const verified = this.#verified.get(idOf(entry));
    if (verified === undefined) return undefined;
    const path = this.#directory.newPath();
    if (!(await this.#directory.use(verified.name, path))) return undefined;
    await using taken = new AsyncDisposableStack();
    taken.defer(() => unlink(path));
    const file = taken.use(await open(path));
    await noteUse(file, verified);
    taken.move();
    const body = file.createReadStream();
    // A link that stays is removed with the directory of this process.
    body.once("close", () => void unlink(path).catch(() => undefined));
    return { body, file, sharedPath: path };
  }

  /** Reads a whole entry. False without one; a damaged one is removed first. */
  async verify(entry: Entry, signal: AbortSignal): Promise<"verified" | "damaged" | "absent"> {
    const name = await this.#directory.find(entry);
    const path = this.#directory.newPath();
    if (name === undefined || !(await this.#directory.use(name, path))) return "absent";
    try {
      await using file = await open(path);
      if (await holds(file, entry.sizeBytes, crcOf(name), signal)) {
        this.#remember(entry, name);
        return "verified";
      }
      await this.#directory.drop(entry.key);
      return "damaged";
    } finally {
      await unlink(path);
    }
  }

  /**
   * Fills an entry with the content that `openContent` returns, if any, and uses it up. No entry
   * comes of content of another size, of a cache without room, which opens no content, and of a
   * full disk, where old entries go. Rejects with the content's error, the system's, or the
   * signal's reason.
   */
  async fill(
    entry: Entry,
    openContent: () => Promise<Readable | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    // Room first: without it the content would be opened twice for one reading.
    using room = await this.#space.reserve(entry.sizeBytes);
    if (room === undefined) return;
    const body = await openContent();
    if (body === undefined) return;
    try {
      await this.#write(entry, body, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isDiskFull(error) && (await this.#space.freeDisk(entry.sizeBytes))) return;
      throw error;
    }
  }

  /** Removes entries until the file system has the free bytes that the cache leaves. */
  async freeDisk(): Promise<void> {
    await this.#space.freeDisk();
  }

  /** Removes the entries of a key. */
  async drop(key: string): Promise<void> {
    await this.#directory.drop(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#directory[Symbol.asyncDispose]();
  }

  async #write(entry: Entry, body: Readable, signal: AbortSignal): Promise<void> {
    const path = this.#directory.newPath();
    try {
      let [crc, bytes] = [0, 0];
      const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          bytes += chunk.byteLength;
          crc = crc32(chunk, crc);
          yield chunk;
        }
      };
      const file = await open(path, "wx", 0o600);
      await pipeline(body, counted, file.createWriteStream(), { signal });
      if (bytes !== entry.sizeBytes) return;
      const name = entryName(entry, crc);
      // Without fsync(2): what a crash of the machine damages is found by its checksum.
      await this.#directory.add(path, name, entry);
      this.#remember(entry, name);
    } finally {
      body.destroy();
      await unlessAbsent(() => unlink(path));
    }
  }

  #remember(entry: Entry, name: string): void {
    this.#verified.set(idOf(entry), { name, notedMs: -Infinity });
  }
}

function idOf({ key, etag }: Entry): string {
  return `${key}.${etag}`;
}

/** The time of the last access is that of the last use; that of the last change stays. */
async function noteUse(file: FileHandle, verified: Verified): Promise<void> {
  const nowMs = Date.now();
  if (nowMs < verified.notedMs + noteUseMs) return;
  verified.notedMs = nowMs;
  await file.utimes(nowMs / 1000, (await file.stat()).mtimeMs / 1000);
}

async function holds(
  file: FileHandle,
  sizeBytes: number,
  crc: number,
  signal: AbortSignal,
): Promise<boolean> {
  if ((await file.stat()).size !== sizeBytes) return false;
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, sizeBytes)));
  let found = 0;
  for (let position = 0; position < sizeBytes;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read({ buffer: chunk, position });
    if (bytesRead === 0) return false;
    found = crc32(chunk.subarray(0, bytesRead), found);
    position += bytesRead;
  }
  return found === crc;
}
