/**
 * Processes by their numbers: found, signalled, seen to be gone.
 */
import { existsSync } from "node:fs";
import { readProc } from "./files.ts";
import { type ProcStat, readStat } from "./stat.ts";

/**
 * Processes whose parent is a thread, the first one unless told, of a process; none when it is
 * gone. Throws the system's error when this process can open nothing more. See
 * proc_pid_task_children(5).
 */
export function childrenOf(pid: number, thread: string | number = pid): readonly number[] {
  const children = readProc(`/proc/${pid}/task/${thread}/children`);
  return children.split(" ").filter(Boolean).map(Number);
}

/** The children of a process, as {@link childrenOf}; none also where nobody can look. */
export function knownChildrenOf(pid: number): readonly number[] {
  try {
    return childrenOf(pid);
  } catch {
    return [];
  }
}

/**
 * Sends a signal, where that is possible: not to a process that is gone, nor to one that is another
 * user's.
 */
export function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Whoever needs to know looks whether it is still there.
  }
}

/**
 * Whether there is a process with a number, as a zombie also, and also when it is another user's.
 */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Whether a process is gone with all its threads, or only a zombie that waits for its parent. */
export function isGone(pid: number): boolean {
  // Where /proc hides other users' processes there is nothing to read, so ask again in a way that
  // cannot be hidden.
  try {
    const stat = readStat(`/proc/${pid}`);
    return stat === undefined ? !exists(pid) : stat.hasEnded && stat.threads <= 1;
  } catch {
    return !exists(pid);
  }
}

/**
 * Whether a process that is the first of a pid namespace, and all others of it, are on their way
 * out of the kernel, or gone: they run nothing any more. False where nobody can tell.
 */
export function runNothing(firstPid: number): boolean {
  try {
    const first = readStat(`/proc/${firstPid}`);
    if (first === undefined) return !exists(firstPid);
    if (!isOver(first)) return false;
    if (first.hasEnded) return true;
    const children = childrenOf(firstPid);
    // Whose parent goes meanwhile becomes the first process's child: who was not met before it
    // would be there then.
    return (
      children.every((child) => isGoing(child) && childrenOf(child).length === 0) &&
      childrenOf(firstPid).every((child) => children.includes(child)) &&
      tellsChildren()
    );
  } catch {
    return false;
  }
}

/** Whether this kernel says whose parent a thread is: not all are built with that. */
function tellsChildren(): boolean {
  return (areChildrenTold ??= existsSync("/proc/thread-self/children"));
}

let areChildrenTold: boolean | undefined;

function isGoing(pid: number): boolean {
  const stat = readStat(`/proc/${pid}`);
  return stat === undefined ? !exists(pid) : isOver(stat);
}

/**
 * Of one with several threads only the first would be known, and the others' children are not
 * looked for.
 */
function isOver({ isExiting, threads }: ProcStat): boolean {
  return isExiting && threads <= 1;
}
