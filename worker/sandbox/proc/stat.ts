/**
 * What the kernel says of a process or thread in one line: see proc_pid_stat(5).
 */
import { readProcRecord } from "./files.ts";

/** One process, or one thread. */
export interface ProcStat {
  /** Whether it has ended, and at most waits for its parent. */
  readonly hasEnded: boolean;
  /** Whether it is on its way out of the kernel: it runs nothing of a program any more. */
  readonly isExiting: boolean;
  /**
   * Whether it waits and cannot be woken, such as for a child that still uses its memory
   * (vfork(2)).
   */
  readonly isSuspended: boolean;
  /** Whether a signal has stopped it. */
  readonly isStopped: boolean;
  readonly parentPid: number;
  readonly threads: number;
  /**
   * When it began, in the kernel's ticks since boot: with the number it tells one process from all
   * others.
   */
  readonly startTicks: number;
  /** Processor time of the process itself. */
  readonly ownMs: number;
  /** Processor time of its children, and of theirs, that have ended and were waited for. */
  readonly childrenMs: number;
}

/** PF_EXITING of linux/sched.h. */
const exitingFlag = 0x4;

/**
 * Milliseconds of the kernel's tick for processes. It is the same on every architecture that Node
 * runs on.
 */
const tickMs = 10;

/** Fields, counted from the one behind the name. */
const fields = { state: 0, parent: 1, flags: 6, userTime: 11, threads: 17, start: 19 } as const;

/**
 * Reads it from a directory of /proc. Undefined when the process or thread is gone, or not for this
 * user to see.
 *
 * @param place such as `/proc/7`, or `/proc/7/task/8` for a thread
 */
export function readStat(place: string): ProcStat | undefined {
  const stat = readProcRecord(`${place}/stat`);
  // The name may hold anything, the last parenthesis included in it is the kernel's.
  const values = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (values.length <= fields.start) return undefined;
  const state = values[fields.state];
  const number = (field: number): number => Number(values[field]);
  const { userTime } = fields;
  return {
    hasEnded: state === "Z" || state === "X",
    isExiting: (number(fields.flags) & exitingFlag) !== 0,
    isSuspended: state === "D",
    isStopped: state === "T",
    parentPid: number(fields.parent),
    threads: number(fields.threads),
    startTicks: number(fields.start),
    ownMs: (number(userTime) + number(userTime + 1)) * tickMs,
    childrenMs: (number(userTime + 2) + number(userTime + 3)) * tickMs,
  };
}
