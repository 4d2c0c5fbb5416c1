/**
 * What a sandbox holds in memory in all, look by look.
 *
 * Adding up what each process holds is quick, but counts pages that processes share once for each;
 * counting each page once takes long. So the sum decides as long as it is within the bound, and
 * what is certain beyond it decides when it is not. Memory that was mapped to be shared is there
 * also when no process has touched it: what a search finds of it counts in place of what processes
 * show of it, if it is more.
 */
import type { LimitReached } from "../../protocol/resource-limits.ts";
import { exactMemory } from "./page-count.ts";
import type { MappingsSearch } from "./mappings.ts";
import type { PrivateMemoryView } from "./tmpfs-usage.ts";
import type { ProcessTree, SeenProcess } from "./process-tree.ts";

/** Least pause between two exact counts of one sandbox's memory, in lengths of such a count. */
const pausePerCount = 1;
/**
 * Exact counts in a row that leave open whether there is too much, because processes were taking up
 * or giving back memory meanwhile. After so many the count is believed: who never holds still does
 * not escape it.
 */
const maxDoubtfulCounts = 8;

/**
 * A count ends when it has come to so many times the bound: what is left would only take time, in
 * which more is taken.
 */
const enoughBounds = 2;

/** Runs a task when those before it have ended. */
export type InTurn = (task: () => Promise<void>) => Promise<void>;

/** Whose memory is counted, and against what. */
export interface CountedMemory {
  readonly boundBytes: number;
  readonly tree: ProcessTree;
  /** Its memory file systems, if it has some of its own. */
  readonly files: PrivateMemoryView | undefined;
  /** Bytes that they hold of other sandboxes' memory. */
  foreignBytes(): number;
  /** Finds memory that they share. It goes on after each look, if at all. */
  readonly mappings: Pick<
    MappingsSearch,
    "sharedBytes" | "lastingSharedBytes" | "kernelBytes" | "isUnderWay"
  >;
  /** By which sandboxes take turns with what would keep too many threads busy at once. */
  readonly inTurn: InTurn;
  /** Told of a count that took long, when it finds too much. It must not throw. */
  onExceeded(limit: LimitReached): void;
  /** Told when such a count cannot be made. It must not throw. */
  onFailed(error: unknown): void;
}

/** All processes at one moment, and bytes that none of them shows. */
interface Held {
  readonly processes: readonly SeenProcess[];
  readonly inFiles: number;
}

/** Adds up the memory of one sandbox. */
export class MemoryTotal {
  readonly #counted: CountedMemory;
  #peakBytes: number | undefined;
  /** What was held for certain at some look, shared memory left out, and in all. */
  #certain: { readonly own: number; readonly all: number; readonly at: Held } | undefined;
  /** What was held for certain, shared memory left out, when the last search for that began. */
  #ownBeforeSearch = 0;
  #isCounting = false;
  #countAgainAtMs = 0;
  #doubtfulCounts = 0;

  constructor(counted: CountedMemory) {
    this.#counted = counted;
  }

  /** The most that was held as far as was seen; undefined before the first look. */
  get peakBytes(): number | undefined {
    return this.#peakBytes;
  }

  /**
   * Takes note of a look; tells when it shows too much. May begin a count that takes long.
   *
   * @param filesBytes that are in memory file systems of its own
   */
  look(processes: readonly SeenProcess[], filesBytes: number): LimitReached | undefined {
    const { mappings, boundBytes: bound } = this.#counted;
    const now = { processes, inFiles: this.#unshown(filesBytes) };
    const most = mostOf(now, mappings.sharedBytes);
    const certain = this.#certainSinceCounted(now);
    const own = Math.max(leastOf(now), certain.own);
    const least = Math.max(own, certain.all, this.#ownBeforeSearch + mappings.lastingSharedBytes);
    if (!mappings.isUnderWay) this.#ownBeforeSearch = own;
    if (most <= bound || least > bound) return this.#holds(most <= bound ? most : least);
    void this.#count();
    return undefined;
  }

  #inFiles(): number {
    return this.#unshown(this.#counted.files?.read()?.bytes ?? 0);
  }

  /** What no process shows: that, what the kernel holds for mappings, and what is others'. */
  #unshown(filesBytes: number): number {
    return filesBytes + this.#counted.mappings.kernelBytes + this.#counted.foreignBytes();
  }

  #holds(bytes: number): LimitReached | undefined {
    this.#peakBytes = Math.max(this.#peakBytes ?? 0, bytes);
    const bound = this.#counted.boundBytes;
    return bytes > bound ? { limit: "memoryBytes", bound, peak: this.#peakBytes } : undefined;
  }

  /**
   * What was certain once, with what the same processes have got as their own since, and without
   * what they gave back. Shared pages that a process has got may have been counted for others.
   */
  #certainSinceCounted(now: Held): { readonly own: number; readonly all: number } {
    const nothing = { own: 0, all: 0 };
    if (this.#certain === undefined) return nothing;
    const { own, all, at } = this.#certain;
    const { bornOrGone, ownGained, ownLost, sharedLost } = changesBetween(at, now);
    if (bornOrGone > 0) return nothing;
    const grown = ownGained - ownLost + now.inFiles - at.inFiles;
    return { own: own + grown, all: all + grown - sharedLost };
  }

  /** Counts each page once: other looks go on meanwhile. */
  async #count(): Promise<void> {
    if (this.#isCounting || performance.now() < this.#countAgainAtMs) return;
    this.#isCounting = true;
    await this.#counted.inTurn(async () => {
      const beganMs = performance.now();
      try {
        const limit = await this.#countExactly();
        if (limit !== undefined) this.#counted.onExceeded(limit);
      } catch (error) {
        this.#counted.onFailed(error);
      }
      const endedMs = performance.now();
      this.#countAgainAtMs = endedMs + pausePerCount * (endedMs - beganMs);
    });
    this.#isCounting = false;
  }

  async #countExactly(): Promise<LimitReached | undefined> {
    const { tree, files, mappings, boundBytes } = this.#counted;
    const before = { processes: tree.look(true), inFiles: this.#inFiles() };
    const enough = enoughBounds * boundBytes;
    const exact = await exactMemory(before.processes, files?.devices ?? [], enough);
    // Where the kernel does not tell, the sum that counts some pages more than once has to do.
    if (exact === undefined) return this.#holds(mostOf(before, mappings.sharedBytes));
    const after = { processes: tree.look(true), inFiles: this.#inFiles() };
    const own = exact.ownBytes + Math.min(before.inFiles, after.inFiles);
    const held = own + exact.sharedBytes;
    const doubt = doubtOf(before, after);
    this.#certain = { own: own - doubt, all: held - doubt, at: after };
    const isDoubtful = held > boundBytes && held - doubt <= boundBytes;
    this.#doubtfulCounts = isDoubtful ? this.#doubtfulCounts + 1 : 0;
    if (isDoubtful && this.#doubtfulCounts < maxDoubtfulCounts) return undefined;
    return this.#holds(held);
  }
}

/** Pages that processes share by a fork count for each of them. */
function mostOf({ processes, inFiles }: Held, foundSharedBytes: number): number {
  const mapped = sum(processes, ({ sharedBytes }) => sharedBytes);
  const own = sum(processes, ({ privateBytes }) => privateBytes);
  return inFiles + own + Math.max(mapped, foundSharedBytes);
}

/** What one process has as its own is in nobody else's sum. */
function leastOf({ processes, inFiles }: Held): number {
  return inFiles + Math.max(0, ...processes.map(({ privateBytes }) => privateBytes));
}

/**
 * Bytes by which what processes hold differs from one look to a later one, none of them negative.
 */
interface Changes {
  /** Of processes that only one of the looks saw. */
  bornOrGone: number;
  ownGained: number;
  ownLost: number;
  sharedGained: number;
  sharedLost: number;
}

function changesBetween(before: Held, after: Held): Changes {
  const changes = { bornOrGone: 0, ownGained: 0, ownLost: 0, sharedGained: 0, sharedLost: 0 };
  const unmatched = new Map(before.processes.map((process) => [nameOf(process), process]));
  for (const process of after.processes) {
    const name = nameOf(process);
    const former = unmatched.get(name);
    unmatched.delete(name);
    if (former === undefined) {
      changes.bornOrGone += allBytes(process);
      continue;
    }
    const own = process.privateBytes - former.privateBytes;
    const shared = process.sharedBytes - former.sharedBytes;
    changes[own > 0 ? "ownGained" : "ownLost"] += Math.abs(own);
    changes[shared > 0 ? "sharedGained" : "sharedLost"] += Math.abs(shared);
  }
  changes.bornOrGone += sum([...unmatched.values()], allBytes);
  return changes;
}

/**
 * Bytes by which an exact count may be too high because the processes were looked at one after the
 * other: what moves from one to the next counts for both, and so does a page that is counted before
 * more of them map it. And memory that a child uses with its parent until it runs another program
 * (vfork(2)) is told of either.
 */
function doubtOf(before: Held, after: Held): number {
  const { bornOrGone, ownLost, sharedGained, sharedLost } = changesBetween(before, after);
  const looks = [...before.processes, ...after.processes];
  const suspended = new Set(looks.flatMap(({ pid, isSuspended }) => (isSuspended ? [pid] : [])));
  const borrowed = after.processes.filter(({ parentPid }) => suspended.has(parentPid));
  return bornOrGone + ownLost + sharedGained + sharedLost + sum(borrowed, allBytes);
}

function nameOf({ pid, startTicks }: SeenProcess): string {
  return `${pid}-${startTicks}`;
}

function allBytes({ privateBytes, sharedBytes }: SeenProcess): number {
  return privateBytes + sharedBytes;
}

function sum<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
  return items.reduce((all, item) => all + bytesOf(item), 0);
}
