/**
 * The processes of a sandbox, as the host sees them.
 */
import { listProc, readProc } from "./proc-files.ts";

/** One process at the time of a look. */
export interface SeenProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** Whether it waits and cannot be woken, such as for a child that still uses its memory (vfork(2)). */
  readonly isSuspended: boolean;
  /**
   * The directory of /proc that shows what it holds: that of a living thread. A process goes on when its first thread has
   * ended, whose own directory shows no memory and no files then.
   */
  readonly place: string;
  /** When it began, in the kernel's ticks since boot: with the number it tells one process from all others. */
  readonly startTicks: number;
  readonly threads: number;
  /** Processor time of the process itself. */
  readonly ownMs: number;
  /** Processor time of its children, and of theirs, that have ended and were waited for. */
  readonly childrenMs: number;
  /** Pages of its own, those that are swapped out included, and page tables. Forked processes share some of the pages. */
  readonly privateBytes: number;
  /** What of that are page tables. */
  readonly tableBytes: number;
  /** Pages of shared memory that it maps. */
  readonly sharedBytes: number;
}

/** Milliseconds of the kernel's tick for processes. It is the same on every architecture that Node runs on. */
const tickMs = 10;

/** Fields of proc_pid_stat(5), counted from the one behind the name. */
const fields = { state: 0, parent: 1, userTime: 11, threads: 17, start: 19 } as const;

/** Of a thread that has ended, or is about to be gone. */
const endedStates: readonly (string | undefined)[] = ["Z", "X"];

/**
 * A process and all that descend from it, look by look. Files that a process maps are the page cache's, and count nowhere.
 */
export class ProcessTree {
  readonly #firstPid: number;
  /** Those of the last look, by number. */
  #last: ReadonlyMap<number, SeenProcess> = new Map();

  constructor(firstPid: number) {
    this.#firstPid = firstPid;
  }

  /**
   * All of them that are there now, those that have ended and are waited for included; none when all are gone. A process
   * that was seen once is found again, also when its parent has ended or the kernel left it out of a list for once.
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
      for (const child of childrenOf(seen)) pids.push(child);
    }
    this.#last = found;
    return [...found.values()];
  }
}

function readProcess(pid: number, withMemory: boolean): SeenProcess | undefined {
  const values = readStat(`/proc/${pid}`);
  if (values.length <= fields.start) return undefined;
  const number = (field: number): number => Number(values[field]);
  const { userTime } = fields;
  const threads = number(fields.threads);
  const hasEnded = endedStates.includes(values[fields.state]);
  const place = (hasEnded && threads > 1 ? livingThreadOf(pid) : undefined) ?? `/proc/${pid}`;
  return {
    pid,
    parentPid: number(fields.parent),
    isSuspended: values[fields.state] === "D",
    place,
    startTicks: number(fields.start),
    threads,
    ownMs: (number(userTime) + number(userTime + 1)) * tickMs,
    childrenMs: (number(userTime + 2) + number(userTime + 3)) * tickMs,
    ...(withMemory ? readMemory(place) : noMemory),
  };
}

/** The values of proc_pid_stat(5) behind the name; none when the process or thread is gone. */
function readStat(place: string): readonly string[] {
  const stat = readProc(`${place}/stat`);
  // The name may hold anything, the last parenthesis included in it is the kernel's.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function livingThreadOf(pid: number): string | undefined {
  const directory = `/proc/${pid}/task`;
  for (const thread of listProc(directory)) {
    const [state] = readStat(`${directory}/${thread}`);
    if (state && !endedStates.includes(state)) return `${directory}/${thread}`;
  }
  return undefined;
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
function childrenOf({ pid, threads }: SeenProcess): readonly number[] {
  const tasks = threads === 1 ? [String(pid)] : listProc(`/proc/${pid}/task`);
  return tasks.flatMap((task) =>
    readProc(`/proc/${pid}/task/${task}/children`).split(" ").filter(Boolean).map(Number),
  );
}
