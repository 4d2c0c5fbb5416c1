/**
 * What the kernel says of a process or thread in one line: see proc_pid_stat(5).
 */
import { readProc } from "./files.ts";

/** One process, or one thread. */
export interface ProcStat {
  /** Whether it is a zombie. */
  readonly hasEnded: boolean;
  /** Whether it is exiting in the kernel, and runs no program any more. */
  readonly isExiting: boolean;
  /** Whether it waits without signals, such as for a child that uses its memory, vfork(2). */
  readonly isSuspended: boolean;
  /** Whether a signal has stopped it. */
  readonly isStopped: boolean;
  readonly parentPid: number;
  readonly threads: number;
  /** Start in the kernel's ticks since boot: with the number it identifies a process. */
  readonly startTicks: number;
  /** CPU time of the process itself. */
  readonly ownMs: number;
  /** CPU time of its reaped descendants. */
  readonly childrenMs: number;
}

/** PF_EXITING of linux/sched.h. */
const exitingFlag = 0x4;

/** Milliseconds of the kernel's tick for processes, on every architecture of Node. */
const tickMs = 10;

/** Positions of fields after the name. */
const fields = { state: 0, parent: 1, flags: 6, userTime: 11, threads: 17, start: 19 } as const;

/**
 * Undefined when the process or thread is gone, or hidden.
 *
 * @param place such as `/proc/7`, or `/proc/7/task/8` for a thread
 */
export function readStat(place: string): ProcStat | undefined {
  const stat = readProc(`${place}/stat`);
  // The name may hold anything; the last parenthesis is the kernel's.
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
