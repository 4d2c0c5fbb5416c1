/**
 * The processes of a sandbox, as the host sees them.
 */
import { listProc, readProc } from "../proc/files.ts";
import { allChildrenOf, childrenOf } from "../proc/processes.ts";
import { type ProcStat, readStat } from "../proc/stat.ts";

/** One process at the time of a sample. */
export interface ProcessSample extends Omit<ProcStat, "hasEnded" | "isExiting"> {
  readonly pid: number;
  /** Its directory in /proc; that of a living thread where the first thread has ended. */
  readonly place: string;
  /** Bytes of anonymous memory, swap and page tables. Forked processes share some of it. */
  readonly privateBytes: number;
  /** Page tables alone, in bytes. */
  readonly tableBytes: number;
  /** Bytes of shared memory and tmpfs files that it maps and has touched. */
  readonly sharedBytes: number;
}

/** A process and its descendants, sample by sample. */
export class ProcessTree {
  readonly #firstPid: number;
  /** Those of the last sample, by number. */
  #last: ReadonlyMap<number, ProcessSample> = new Map();

  constructor(firstPid: number) {
    this.#firstPid = firstPid;
  }

  /**
   * All processes, zombies included; none when all are gone. Finds a known process again although
   * its parent has ended.
   *
   * @param withMemory whether to read memory, which takes most of the time; else it is 0
   */
  sample(withMemory: boolean): readonly ProcessSample[] {
    const found = new Map<number, ProcessSample>();
    const pids = [this.#firstPid, ...this.#last.keys()];
    for (const pid of pids) {
      if (found.has(pid)) continue;
      const sample = sampleProcess(pid, withMemory);
      if (sample === undefined) continue;
      const before = this.#last.get(pid);
      // The kernel may have reused the number.
      if (before !== undefined && before.startTicks !== sample.startTicks) continue;
      found.set(pid, sample);
      for (const child of childrenIn(sample)) pids.push(child);
    }
    this.#last = found;
    return [...found.values()];
  }
}

function sampleProcess(pid: number, withMemory: boolean): ProcessSample | undefined {
  const own = `/proc/${pid}`;
  const stat = readStat(own);
  if (stat === undefined) return undefined;
  const { hasEnded, ...rest } = stat;
  const place = (hasEnded && rest.threads > 1 ? livingThreadOf(pid) : undefined) ?? own;
  return { pid, place, ...rest, ...(withMemory ? readMemory(place) : noMemory) };
}

function livingThreadOf(pid: number): string | undefined {
  const directory = `/proc/${pid}/task`;
  const places = listProc(directory).map((thread) => `${directory}/${thread}`);
  return places.find((place) => readStat(place)?.hasEnded === false);
}

/** Lines of proc_pid_status(5). A zombie has none of them. */
const memoryLines = /^(RssAnon|RssShmem|VmPTE|VmSwap):\s+(\d+) kB$/gm;

const noMemory = { privateBytes: 0, tableBytes: 0, sharedBytes: 0 };

function readMemory(place: string): typeof noMemory {
  const memory = { ...noMemory };
  for (const [, name, kibibytes] of readProc(`${place}/status`).matchAll(memoryLines)) {
    const bytes = Number(kibibytes) * 1024;
    memory[name === "RssShmem" ? "sharedBytes" : "privateBytes"] += bytes;
    if (name === "VmPTE") memory.tableBytes = bytes;
  }
  return memory;
}

/** Threads have children too. Their list is only read where there are several. */
function childrenIn({ pid, threads }: ProcessSample): readonly number[] {
  return threads === 1 ? childrenOf(pid) : allChildrenOf(pid);
}
