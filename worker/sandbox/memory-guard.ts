/**
 * Bounds the memory of sandboxes by looking at what their processes hold, for programs that no rlimit fits.
 */
import { closeSync, openSync, readSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Milliseconds between two looks at all watched sandboxes. */
export const lookMs = 20;
/** Least pause between two looks, in lengths of a look: a sandbox full of processes must not hold the worker up. */
const pausePerLook = 4;

/** A sandbox whose memory is bounded. */
export interface WatchedSandbox {
  /** The sandbox's first process, as this host numbers it: what runs inside descends from it. */
  readonly firstPid: number;
  /** What all its processes together may hold. */
  readonly limitBytes: number;
  /** Told once, when they hold more. It must not throw. */
  onExceeded(): void;
}

/** A way to bound what a whole sandbox holds in memory. */
export interface MemoryGuard {
  /** Watches a sandbox until the returned watch is disposed, which is due when its first process is gone. */
  watch(sandbox: WatchedSandbox): Disposable;
}

/**
 * A guard that looks every {@link lookMs}. Between two looks a sandbox can hold more than its limit; how much more is
 * measured in docs/sandbox.md.
 */
export class PollingMemoryGuard implements MemoryGuard {
  readonly #watched = new Set<WatchedSandbox>();
  readonly #onLooked: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param onLooked told after each look at all watched sandboxes; it must not throw */
  constructor(onLooked: () => void = () => undefined) {
    this.#onLooked = onLooked;
  }

  watch(sandbox: WatchedSandbox): Disposable {
    this.#watched.add(sandbox);
    this.#timer ??= this.#lookIn(lookMs);
    return {
      [Symbol.dispose]: () => {
        this.#watched.delete(sandbox);
        if (this.#watched.size > 0) return;
        clearTimeout(this.#timer);
        this.#timer = undefined;
      },
    };
  }

  #lookIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), delayMs).unref();
  }

  #look(): void {
    const beganMs = performance.now();
    for (const sandbox of this.#watched) {
      if (heldBytes(sandbox.firstPid) <= sandbox.limitBytes) continue;
      this.#watched.delete(sandbox);
      sandbox.onExceeded();
    }
    const tookMs = performance.now() - beganMs;
    this.#timer =
      this.#watched.size === 0 ? undefined : this.#lookIn(Math.max(lookMs, pausePerLook * tookMs));
    this.#onLooked();
  }
}

/** Whether this kernel shows what {@link PollingMemoryGuard} looks at. */
export async function canWatchMemory(): Promise<boolean> {
  const texts = ["/proc/self/status", "/proc/thread-self/children"].map((path) =>
    readFile(path, "latin1").catch(() => undefined),
  );
  const [status, children] = await Promise.all(texts);
  return status !== undefined && status.includes("\nRssAnon:") && children !== undefined;
}

/**
 * What a process and its descendants hold: pages of their own, shared memory that they map, and what of it is swapped
 * out. Files that they map are the page cache's. Shared memory counts once for each process that maps it.
 *
 * The number of processes is bounded by the profile (RLIMIT_NPROC). Files of /proc are read at once: that takes some
 * microseconds and no disk, a tenth of what a promise for each would cost.
 */
function heldBytes(firstPid: number): number {
  let sum = 0;
  const pids = [firstPid];
  for (const pid of pids) {
    const status = readProc(`/proc/${pid}/status`);
    for (const [, kibibytes] of status.matchAll(heldLines)) sum += Number(kibibytes) * 1024;
    for (const task of tasksOf(pid, status)) {
      const children = readProc(`/proc/${pid}/task/${task}/children`);
      for (const child of children.split(" ")) if (child !== "") pids.push(Number(child));
    }
  }
  return sum;
}

/** Lines of proc_pid_status(5). */
const heldLines = /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm;
const singleThread = "\nThreads:\t1\n";

/** Threads have children of their own. Listing them is spared where there is one only. */
function tasksOf(pid: number, status: string): readonly (string | number)[] {
  if (status === "") return [];
  if (status.includes(singleThread)) return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

const chunk = Buffer.alloc(16 * 1024);

/** The text of a file of /proc; empty when the process is gone. */
function readProc(path: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    let text = "";
    for (let length; (length = readSync(descriptor, chunk)) > 0;)
      text += chunk.toString("latin1", 0, length);
    return text;
  } catch {
    return "";
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
