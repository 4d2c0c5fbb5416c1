/**
 * Processes by their numbers: found, signalled, seen to be gone.
 */
import { existsSync, openSync, writeFileSync } from "node:fs";
import { OpenFile, listProc, readProc } from "./files.ts";
import { type ProcStat, readStat } from "./stat.ts";

/**
 * Children of a thread of a process, the first one by default; none when it is gone. Throws the
 * system's error when this process can open nothing more. See proc_pid_task_children(5).
 */
export function childrenOf(pid: number, thread: string | number = pid): readonly number[] {
  return numbersIn(readProc(childrenFile(pid, thread)));
}

/** Ids of its threads. Otherwise as {@link childrenOf}. */
export function threadsOf(pid: number): readonly string[] {
  return listProc(`/proc/${pid}/task`);
}

/** Children of all its threads. Otherwise as {@link childrenOf}. */
export function allChildrenOf(pid: number): readonly number[] {
  return threadsOf(pid).flatMap((thread) => childrenOf(pid, thread));
}

/**
 * The list of {@link childrenOf}, open; the caller owns it. Undefined where it cannot be opened.
 */
export function openChildren(pid: number): OpenFile | undefined {
  try {
    return new OpenFile(openSync(childrenFile(pid, pid), "r"));
  } catch {
    return undefined;
  }
}

/** What an open list tells now: the first of them at least; none when the process is gone. */
export function firstOf(children: OpenFile | undefined): readonly number[] {
  return numbersIn(children?.read() ?? "");
}

function childrenFile(pid: number, thread: string | number): string {
  return `/proc/${pid}/task/${thread}/children`;
}

function numbersIn(list: string): readonly number[] {
  return list.split(" ").filter(Boolean).map(Number);
}

/** Those of its first thread; none also where this process can open nothing more. */
export function knownChildrenOf(pid: number): readonly number[] {
  try {
    return childrenOf(pid);
  } catch {
    return [];
  }
}

/** Sends a signal, unless the process is gone or another user's. */
export function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Callers check whether it is still there.
  }
}

/**
 * Has the kernel end a process, and those that it will have, before any other where memory is
 * short: better a tool than the worker. proc_pid_oom_score_adj(5). Where that is not allowed
 * nothing changes.
 */
export function putLast(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  } catch {
    // A worker that is root and may not write what is not its own; or the process is gone, and its
    // exit says why.
  }
}

/** Whether there is a process with a number, also a zombie or another user's. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Whether a process with all its threads is gone, or a zombie. */
export function isGone(pid: number): boolean {
  // /proc may hide other users' processes; a signal does not.
  try {
    const stat = readStat(`/proc/${pid}`);
    return stat === undefined ? !exists(pid) : stat.hasEnded && stat.threads <= 1;
  } catch {
    return !exists(pid);
  }
}

/**
 * Whether the first process of a pid namespace, and all others of it, are gone or exiting in the
 * kernel, and run no program any more. False where the kernel hides it.
 */
export function runNothing(firstPid: number): boolean {
  try {
    const first = readStat(`/proc/${firstPid}`);
    if (first === undefined) return !exists(firstPid);
    if (!isOver(first)) return false;
    if (first.hasEnded) return true;
    const children = childrenOf(firstPid);
    // An orphan becomes a child of the first process, and shows in the second list.
    return (
      children.every((child) => isGoing(child) && childrenOf(child).length === 0) &&
      childrenOf(firstPid).every((child) => children.includes(child)) &&
      tellsChildren()
    );
  } catch {
    return false;
  }
}

/** Not all kernels are built with lists of children. */
export function tellsChildren(): boolean {
  return (areChildrenTold ??= existsSync("/proc/thread-self/children"));
}

let areChildrenTold: boolean | undefined;

function isGoing(pid: number): boolean {
  const stat = readStat(`/proc/${pid}`);
  return stat === undefined ? !exists(pid) : isOver(stat);
}

/** Only of the first thread the children are known. */
function isOver({ isExiting, threads }: ProcStat): boolean {
  return isExiting && threads <= 1;
}
