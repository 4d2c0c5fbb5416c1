/**
 * Processes of a sandbox, seen from the host: found, signalled, waited for until they are gone.
 */
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Clock } from "../../support/clock.ts";
import { SandboxError } from "../sandbox.ts";

/** Milliseconds between looks at whether the sandbox's first process is gone. bubblewrap exits about 1 ms before it. */
const goneLookMs = 1;
/** Milliseconds after which processes that are still there are killed again and the sandbox is given up. */
const goneTimeoutMs = 5_000;

/** Processes whose parent is `pid`, as this host numbers them; none when it is gone. See proc_pid_task_children(5). */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.split(" ").filter(Boolean).map(Number);
}

/** Sends a signal; harmless when the process is gone. */
export function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Already gone.
  }
}

/**
 * Has the kernel end a process, and those that it will have, before any other when the host or the container runs out of
 * memory: better a tool than the worker. Where that is not allowed nothing changes. See proc_pid_oom_score_adj(5).
 */
export function endFirstWithoutMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  } catch {
    // A worker that is root and may not write what is not its own; or the process is gone, and its exit says why.
  }
}

/**
 * Waits until a sandbox's first process, and with it every other, is gone (pid_namespaces(7)), and kills it meanwhile.
 * Throws SandboxError when it cannot be killed.
 */
export async function awaitEnd(firstPid: number, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + goneTimeoutMs;
  while (!(await isGone(firstPid))) {
    if (clock.monotonicMs() > deadlineMs)
      throw new SandboxError(`process ${firstPid} cannot be killed`);
    signalQuietly(firstPid, "SIGKILL");
    await clock.sleep(goneLookMs);
  }
}

/** Whether a process is gone or only a zombie that waits for its parent. See proc_pid_stat(5). */
async function isGone(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return /\) [ZX]/.test(stat);
  } catch {
    // Also unreadable where /proc hides other users' processes, so ask again in a way that cannot be hidden.
    return !exists(pid);
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
