/**
 * What a tool has made of its work directory: bytes on disk and files, counted piece by piece while
 * the tool goes on.
 */
import { type BigIntStats, closeSync, fstatSync, statfsSync } from "node:fs";
import { openTop, type TreeVisitor, walkTree } from "./tree-walk.ts";

/** What stat(2) counts in. */
export const blockBytes = 512;

/**
 * A file among those of a tree: its number on the device of the top directory, where that is one
 * and exact.
 */
export type FileKey = number | string;

/** What was found in a tree, its top directory left out. */
export interface DiskUse {
  readonly bytes: number;
  /** The files, directories and what else there is: a second name for one counts no second time. */
  readonly inodes: ReadonlySet<FileKey>;
  /** How many they are, with the names of which a walk knows no more, or not yet. */
  readonly files: number;
  /** Whether there is something that no walk can look at. */
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

  /** @param device of the top directory */
  constructor(device: bigint) {
    this.#device = device;
  }

  get files(): number {
    return this.inodes.size + this.#names;
  }

  meet(names: number): void {
    this.#names += names;
  }

  see(stats: BigIntStats): void {
    this.#names--;
    const key = this.#keyOf(stats);
    if (this.inodes.has(key)) return;
    this.inodes.add(key);
    this.bytes += Number(stats.blocks) * blockBytes;
  }

  miss(): void {
    this.isUncountable = true;
  }

  /**
   * A tree may have several devices without any mount: subvolumes of btrfs number their files each
   * by itself.
   */
  #keyOf({ dev, ino }: BigIntStats): FileKey {
    const isExact = dev === this.#device && ino <= Number.MAX_SAFE_INTEGER;
    return isExact ? Number(ino) : `${dev}:${ino}`;
  }
}

/**
 * Walks through a tree once when it is made, for what is there already, and then again and again,
 * piece by piece. Nothing is opened by following a link, whatever changes meanwhile. The owner
 * disposes it.
 */
export class DiskWalk implements Disposable {
  /** The device that the tree is on, as stat(2) numbers it. */
  readonly device: number;
  /** What was there at first. */
  readonly staged: DiskUse;
  readonly #top: number;
  /** What the last walk through everything found. */
  #whole: DiskUse;
  /** What the file system held when that began. */
  #heldAtWhole: Amount | undefined;
  #found: Found;
  /** The walk that is under way, and what the file system held when it began. */
  #walk:
    { readonly steps: Generator<undefined, void>; readonly held: Amount | undefined } | undefined;

  /** Throws the system's error when there is no such directory. */
  constructor(path: string) {
    this.#top = openTop(path);
    this.device = fstatSync(this.#top).dev;
    this.#heldAtWhole = this.#held();
    const staged = this.#newFound();
    for (const _step of walkTree(this.#top, staged));
    this.staged = staged;
    this.#whole = staged;
    this.#found = this.#newFound();
  }

  /** What the last walk through everything has found, and what this one has so far. */
  get uses(): readonly DiskUse[] {
    return [this.#whole, this.#found];
  }

  /** Whether it has started and not come to its end: then it has descriptors open. */
  get isUnderWay(): boolean {
    return this.#walk !== undefined;
  }

  /**
   * What the whole file system holds more than when the last walk through everything began. That
   * may be others' doing, so it proves nothing; but the tree cannot have grown by more where this
   * is not much.
   */
  get heldMore(): Amount {
    const [before, now] = [this.#heldAtWhole, this.#held()];
    if (before === undefined || now === undefined) return { bytes: 0, files: 0 };
    return { bytes: now.bytes - before.bytes, files: now.files - before.files };
  }

  /**
   * Goes on to the end of this walk, or until `performance.now()` is `untilMs`, whichever is first.
   */
  goOn(untilMs: number): void {
    this.#walk ??= { steps: walkTree(this.#top, this.#found), held: this.#held() };
    const { steps, held } = this.#walk;
    do {
      if (steps.next().done !== true) continue;
      this.#heldAtWhole = held;
      this.#whole = this.#found;
      this.#found = this.#newFound();
      this.#walk = undefined;
      return;
    } while (performance.now() < untilMs);
  }

  #newFound(): Found {
    return new Found(BigInt(this.device));
  }

  /**
   * Undefined where the file system does not tell. Some do not count files; then these are none.
   */
  #held(): Amount | undefined {
    try {
      const { bsize, blocks, bfree, files, ffree } = statfsSync(`/proc/self/fd/${this.#top}`);
      return { bytes: (blocks - bfree) * bsize, files: files - ffree };
    } catch {
      return undefined;
    }
  }

  [Symbol.dispose](): void {
    this.#walk?.steps.return();
    closeSync(this.#top);
  }
}
