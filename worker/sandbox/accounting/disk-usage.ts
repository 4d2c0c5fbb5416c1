/**
 * Usage of a work directory: bytes on disk and files, counted piece by piece while the tool runs.
 */
import { type BigIntStats, closeSync, fstatSync, statfsSync } from "node:fs";
import { openTop, type TreeVisitor, walkTree } from "./tree-walk.ts";

/** Unit of `blocks` in stat(2). */
export const blockBytes = 512;

/** A file of a tree: its inode number, with the device where that is not the top directory's. */
export type FileKey = number | string;

/** What a walk found, without the top directory. */
export interface DiskUse {
  readonly bytes: number;
  /** Files, directories and others; hard links count once. */
  readonly inodes: ReadonlySet<FileKey>;
  /** How many they are, with names that the walk has only listed yet. */
  readonly files: number;
  /** Whether the walk cannot inspect something. */
  readonly isUncountable: boolean;
}

/** Bytes and files. */
export interface Amount {
  readonly bytes: number;
  readonly files: number;
}

class Found implements DiskUse, TreeVisitor {
  readonly #device: bigint;
  bytes = 0;
  readonly inodes = new Set<FileKey>();
  isUncountable = false;
  #names = 0;

  constructor(device: number) {
    this.#device = BigInt(device);
  }

  get files(): number {
    return this.inodes.size + this.#names;
  }

  list(names: number): void {
    this.#names += names;
  }

  see({ dev, ino, blocks }: BigIntStats): void {
    this.#names--;
    // Subvolumes of btrfs are devices of their own, without a mount.
    const isPlain = dev === this.#device && ino <= Number.MAX_SAFE_INTEGER;
    const key = isPlain ? Number(ino) : `${dev}:${ino}`;
    if (this.inodes.has(key)) return;
    this.inodes.add(key);
    this.bytes += Number(blocks) * blockBytes;
  }

  miss(): void {
    this.isUncountable = true;
  }
}

/**
 * Walks a tree once when it is made, for the staged files, then again and again, piece by piece. It
 * follows no link. The owner disposes it.
 */
export class DiskUsage implements Disposable {
  /** The device of the tree, as stat(2) numbers it. */
  readonly device: number;
  readonly staged: DiskUse;
  readonly #top: number;
  #whole: DiskUse;
  #found: Found;
  #steps: Generator<undefined, void> | undefined;
  /** Usage of the file system at the start of the last complete walk, and of this one. */
  #startedAt: { readonly whole: Amount; readonly found: Amount };

  /** Throws the system's error when there is no such directory. */
  constructor(path: string) {
    this.#top = openTop(path);
    this.device = fstatSync(this.#top).dev;
    const fileSystem = this.#fileSystem();
    this.#startedAt = { whole: fileSystem, found: fileSystem };
    const staged = new Found(this.device);
    for (const _step of walkTree(this.#top, staged));
    this.staged = staged;
    this.#whole = staged;
    this.#found = new Found(this.device);
  }

  /** The last complete walk, and this one so far. */
  get uses(): readonly [DiskUse, DiskUse] {
    return [this.#whole, this.#found];
  }

  /** Whether a walk has started and not ended. */
  get isUnderWay(): boolean {
    return this.#steps !== undefined;
  }

  /**
   * Growth of the whole file system since the start of the last complete walk. The tree cannot have
   * grown by more; others may have.
   */
  get fileSystemGrowth(): Amount {
    const [before, now] = [this.#startedAt.whole, this.#fileSystem()];
    return { bytes: now.bytes - before.bytes, files: now.files - before.files };
  }

  /** Continues to the end of this walk, or until `performance.now()` is `untilMs`. */
  goOn(untilMs: number): void {
    this.#steps ??= this.#start();
    do {
      if (this.#steps.next().done !== true) continue;
      this.#whole = this.#found;
      this.#found = new Found(this.device);
      this.#startedAt = { ...this.#startedAt, whole: this.#startedAt.found };
      this.#steps = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  #start(): Generator<undefined, void> {
    this.#startedAt = { ...this.#startedAt, found: this.#fileSystem() };
    return walkTree(this.#top, this.#found);
  }

  /** Some file systems report nothing, or no files; that is 0. */
  #fileSystem(): Amount {
    try {
      const { bsize, blocks, bfree, files, ffree } = statfsSync(`/proc/self/fd/${this.#top}`);
      return { bytes: (blocks - bfree) * bsize, files: files - ffree };
    } catch {
      return { bytes: 0, files: 0 };
    }
  }

  [Symbol.dispose](): void {
    this.#steps?.return();
    closeSync(this.#top);
  }
}
