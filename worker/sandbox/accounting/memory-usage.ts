/**
 * Memory of a sandbox without a control group.
 *
 * The sum of what each process has resident is quick, and counts shared pages several times. Only
 * when it exceeds the bound the kernel counts each page once: PSS of proc_pid_smaps(5).
 */
import { readFile } from "node:fs/promises";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import { type Mapped, sharedMappings } from "./mappings.ts";
import type { ProcessSample, ProcessTree } from "./process-tree.ts";

/**
 * Doubtful counts in a row after which the count stands, so that processes that pass memory to each
 * other do not escape.
 */
const maxDoubtfulCounts = 8;
/** A count ends at this multiple of the bound: the rest would only take time. */
const enoughBounds = 2;

/** Runs a task when those before it have ended. */
export type InTurn = (task: () => Promise<void>) => Promise<void>;

/** Bytes that no process shows. */
export interface Unshown {
  /** Files on the sandbox's own tmpfs. */
  readonly tmpfsBytes: number;
  /** The kernel's records of mappings, and tmpfs of other sandboxes. */
  readonly otherBytes: number;
  /** Shared memory that processes have mapped, touched or not. */
  readonly shared: Pick<Mapped, "shared" | "sharedBytes">;
}

/** Whose memory is counted, and against what. */
export interface CountedMemory {
  readonly boundBytes: number;
  readonly tree: ProcessTree;
  unshown(): Unshown;
  /** One sandbox at a time counts pages, in a thread. */
  readonly inTurn: InTurn;
  /** Called when a count of pages exceeds the bound. It must not throw. */
  onExceeded(limit: LimitReached): void;
  /** Called when a count of pages fails. It must not throw. */
  onFailed(error: unknown): void;
}

/** The memory of one sandbox. */
export class MemoryUsage {
  readonly #counted: CountedMemory;
  #peakBytes: number | undefined;
  #isCounting = false;
  #countAgainAtMs = 0;
  #doubtfulCounts = 0;

  constructor(counted: CountedMemory) {
    this.#counted = counted;
  }

  /** The highest sample; undefined before the first. */
  get peakBytes(): number | undefined {
    return this.#peakBytes;
  }

  /** Returns an exceeded limit. May start a count of pages, which calls back later. */
  check(processes: readonly ProcessSample[], unshown: Unshown): LimitReached | undefined {
    const most = mostOf(processes, unshown);
    // The private memory of one process is in no other's sum.
    const largest = Math.max(0, ...processes.map(({ privateBytes }) => privateBytes));
    const least = largest + unshown.tmpfsBytes + unshown.otherBytes;
    const bound = this.#counted.boundBytes;
    if (most <= bound || least > bound) return this.#compare(most <= bound ? most : least);
    void this.#countInTurn();
    return undefined;
  }

  #compare(bytes: number): LimitReached | undefined {
    this.#peakBytes = Math.max(this.#peakBytes ?? 0, bytes);
    const bound = this.#counted.boundBytes;
    return bytes > bound ? { limit: "memoryBytes", bound, peak: this.#peakBytes } : undefined;
  }

  async #countInTurn(): Promise<void> {
    if (this.#isCounting || performance.now() < this.#countAgainAtMs) return;
    this.#isCounting = true;
    await this.#counted.inTurn(async () => {
      const startMs = performance.now();
      try {
        const limit = await this.#count();
        if (limit !== undefined) this.#counted.onExceeded(limit);
      } catch (error) {
        this.#counted.onFailed(error);
      }
      // Counts of pages take half of one thread at most.
      this.#countAgainAtMs = 2 * performance.now() - startMs;
    });
    this.#isCounting = false;
  }

  async #count(): Promise<LimitReached | undefined> {
    const { tree, boundBytes } = this.#counted;
    const before = tree.sample(true);
    const unshown = this.#counted.unshown();
    const pages = await countPages(before, unshown.shared, enoughBounds * boundBytes);
    // Where the kernel hides PSS, the sum decides.
    if (pages === undefined) return this.#compare(mostOf(before, unshown));
    const after = this.#counted.unshown();
    const tmpfsBytes = Math.min(unshown.tmpfsBytes, after.tmpfsBytes);
    const shared = Math.max(tmpfsBytes + pages.mappedBytes, pages.sharedBytes);
    const held = pages.privateBytes + shared + after.otherBytes;
    const isDoubtful = held > boundBytes && held - doubtOf(before, tree.sample(true)) <= boundBytes;
    this.#doubtfulCounts = isDoubtful ? this.#doubtfulCounts + 1 : 0;
    if (isDoubtful && this.#doubtfulCounts < maxDoubtfulCounts) return undefined;
    return this.#compare(held);
  }
}

/** An upper bound: pages that processes share by a fork count for each of them. */
function mostOf(processes: readonly ProcessSample[], unshown: Unshown): number {
  const { tmpfsBytes, otherBytes, shared } = unshown;
  const resident = sumOf(processes, ({ sharedBytes }) => sharedBytes);
  // Each shared page is on tmpfs or in a mapping without a name.
  const all = Math.max(tmpfsBytes + shared.sharedBytes, resident);
  return sumOf(processes, ({ privateBytes }) => privateBytes) + all + otherBytes;
}

/** What a count of pages found. */
interface Pages {
  readonly privateBytes: number;
  readonly sharedBytes: number;
  /** Sizes of shared mappings that are there now. */
  readonly mappedBytes: number;
}

/**
 * Counts each page once. Undefined where the kernel hides it. The kernel walks page tables, some
 * 100 MB a millisecond: in a thread, and one process after the other.
 */
async function countPages(
  processes: readonly ProcessSample[],
  known: Unshown["shared"],
  enough: number,
): Promise<Pages | undefined> {
  let [privateBytes, sharedBytes] = [0, 0];
  const mapped = new Map<number, number>();
  for (const { place, tableBytes } of processes) {
    if (privateBytes + sharedBytes > enough) break;
    const rollup = await textOf(`${place}/smaps_rollup`);
    // It ended.
    if (rollup === "") continue;
    if (rollup?.includes("\nPss_Anon:") !== true) return undefined;
    privateBytes += tableBytes + bytesIn(rollup, /^(?:Pss_Anon|SwapPss):\s+(\d+) kB$/gm);
    sharedBytes += bytesIn(rollup, /^Pss_Shmem:\s+(\d+) kB$/gm);
    if (known.sharedBytes === 0) continue;
    for (const { inode, endBytes } of sharedMappings((await textOf(`${place}/maps`)) ?? ""))
      mapped.set(inode, Math.max(endBytes, known.shared.get(inode) ?? 0, mapped.get(inode) ?? 0));
  }
  return { privateBytes, sharedBytes, mappedBytes: sumOf([...mapped.values()], (bytes) => bytes) };
}

/**
 * Bytes that a count may have twice: moved to another process meanwhile, newly shared, or used by a
 * child until it runs another program, vfork(2).
 */
function doubtOf(before: readonly ProcessSample[], after: readonly ProcessSample[]): number {
  const present = new Map(after.map((sample) => [nameOf(sample), sample]));
  const samples = [...before, ...after];
  const suspended = new Set(samples.flatMap(({ pid, isSuspended }) => (isSuspended ? [pid] : [])));
  return sumOf(before, (sample) => {
    const now = present.get(nameOf(sample));
    if (now === undefined || suspended.has(sample.parentPid))
      return sample.privateBytes + sample.sharedBytes;
    const released = Math.max(0, sample.privateBytes - now.privateBytes);
    return released + Math.abs(sample.sharedBytes - now.sharedBytes);
  });
}

function nameOf({ pid, startTicks }: ProcessSample): string {
  return `${pid} ${startTicks}`;
}

function bytesIn(text: string, line: RegExp): number {
  return sumOf([...text.matchAll(line)], ([, kibibytes]) => Number(kibibytes) * 1024);
}

function sumOf<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + bytesOf(item), 0);
}

/** Empty when the process is gone; undefined where the kernel refuses. */
async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "latin1").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" || error.code === "ESRCH" ? "" : undefined,
  );
}
