/**
 * The processes of a sandbox, as the host sees them.
 */
import { listProc, readProc } from "../proc/files.ts";
import { childrenOf } from "../proc/processes.ts";
import { type ProcStat, readStat } from "../proc/stat.ts";

/** One process at the time of a look. */
export interface SeenProcess extends Omit<ProcStat, "hasEnded" | "isExiting"> {
  readonly pid: number;
  /**
   * The directory of /proc that shows what it holds: that of a living thread. A process goes on
   * when its first thread has ended, whose own directory shows no memory and no files then.
   */
  readonly place: string;
  /**
   * Pages of its own, those that are swapped out included, and page tables. Forked processes share
   * some of the pages.
   */
  readonly privateBytes: number;
  /** What of that are page tables. */
  readonly tableBytes: number;
  /** Pages of shared memory that it maps. */
  readonly sharedBytes: number;
}

/**
 * A process and all that descend from it, look by look. Files that a process maps are the page
 * cache's, and count nowhere.
 */
export class ProcessTree {
  readonly #firstPid: number;
  /** Those of the last look, by number. */
  #last: ReadonlyMap<number, SeenProcess> = new Map();

  constructor(firstPid: number) {
    this.#firstPid = firstPid;
  }

  /**
   * All of them that are there now, those that have ended and are waited for included; none when
   * all are gone. A process that was seen once is found again, also when its parent has ended or
   * the kernel left it out of a list for once.
   *
   * @param withMemory whether to look at memory, which takes most of the time; else it is 0
   */
  look(withMemory: boolean): readonly SeenProcess[] {
    const found = new Map<number, SeenProcess>();
    const pids = [this.#firstPid, ...this.#last.keys()];
    for (const pid of pids) {
      if (found.has(pid)) continue;
      const seen = readProcess(pid, withMemory);
      if (seen === undefined) continue;
      const before = this.#last.get(pid);
      // The number may be another process's by now.
      if (before !== undefined && before.startTicks !== seen.startTicks) continue;
      found.set(pid, seen);
      for (const child of allChildrenOf(seen)) pids.push(child);
    }
    this.#last = found;
    return [...found.values()];
  }
}

function readProcess(pid: number, withMemory: boolean): SeenProcess | undefined {
  const own = `/proc/${pid}`;
  const stat = readStat(own);
  if (stat === undefined) return undefined;
  const { hasEnded, ...seen } = stat;
  const place = (hasEnded && seen.threads > 1 ? livingThreadOf(pid) : undefined) ?? own;
  return { pid, place, ...seen, ...(withMemory ? readMemory(place) : noMemory) };
}

function livingThreadOf(pid: number): string | undefined {
  const directory = `/proc/${pid}/task`;
  const places = listProc(directory).map((thread) => `${directory}/${thread}`);
  return places.find((place) => readStat(place)?.hasEnded === false);
}

/** Lines of proc_pid_status(5). A process that has ended has none of them. */
const heldLines = /^(RssAnon|RssShmem|VmPTE|VmSwap):\s+(\d+) kB$/gm;

type SeenMemory = Pick<SeenProcess, "privateBytes" | "tableBytes" | "sharedBytes">;
const noMemory: SeenMemory = { privateBytes: 0, tableBytes: 0, sharedBytes: 0 };

function readMemory(place: string): SeenMemory {
  let { privateBytes, tableBytes, sharedBytes } = noMemory;
  for (const [, name, kibibytes] of readProc(`${place}/status`).matchAll(heldLines)) {
    const bytes = Number(kibibytes) * 1024;
    if (name === "RssShmem") sharedBytes = bytes;
    else privateBytes += bytes;
    if (name === "VmPTE") tableBytes = bytes;
  }
  return { privateBytes, tableBytes, sharedBytes };
}

/** Threads have children of their own. Listing them is spared where there is one only. */
function allChildrenOf({ pid, threads }: SeenProcess): readonly number[] {
  if (threads === 1) return childrenOf(pid);
  return listProc(`/proc/${pid}/task`).flatMap((thread) => childrenOf(pid, thread));
}
