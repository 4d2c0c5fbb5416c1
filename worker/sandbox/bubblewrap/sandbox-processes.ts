/**
 * Processes of a sandbox, seen from the host: the first to go when memory is short, waited for until they are gone.
 */
import { writeFileSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Clock } from "../../support/clock.ts";
import { isGone, knownChildrenOf, runNothing, signalQuietly } from "../proc/processes.ts";
import { SandboxError } from "../sandbox.ts";

/** Milliseconds that processes may take to stop which have nothing to do. */
const stoppedSoonMs = 1;
/** Milliseconds in which a look follows the other at whether the sandbox's first process is gone: bubblewrap exits about one before it. */
const goneSoonMs = 2;
/** Milliseconds between looks later on. */
const goneLookMs = 1;
/** Milliseconds after which processes that are still there are killed again and the sandbox is given up. */
const goneTimeoutMs = 5_000;

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

/** Has this thread sleep for some hundredths of a millisecond, which no timer does: another one has something to do for it. */
async function letOthersRun(): Promise<void> {
  await lstat("/proc");
}

/**
 * Stops a sandbox's first process and the one that it has made, which both say that they only wait to be ended. False where
 * there are others, or they did not stop: then all is as before, but that some may be stopped. To end them instead would take
 * a processor as long as half a short call, since they give back their memory first; the caller does it later.
 */
export async function areStopped(firstPid: number, clock: Clock): Promise<boolean> {
  const children = knownChildrenOf(firstPid);
  if (children.length > 1) return false;
  // The first one before its child, so that it does not meet what becomes of that.
  for (const pid of [firstPid, ...children]) signalQuietly(pid, "SIGSTOP");
  const beganMs = clock.monotonicMs();
  do {
    if (runNothing(firstPid)) return true;
    await letOthersRun();
  } while (clock.monotonicMs() - beganMs < stoppedSoonMs);
  return false;
}

/**
 * Waits until a sandbox's first process, and with it every other, is gone (pid_namespaces(7)), and kills it meanwhile. They
 * may be on their way out of the kernel still.
 * Throws SandboxError when it cannot be killed.
 */
export async function awaitEnd(firstPid: number, clock: Clock): Promise<void> {
  const beganMs = clock.monotonicMs();
  while (!runNothing(firstPid) && !isGone(firstPid)) {
    const passedMs = clock.monotonicMs() - beganMs;
    if (passedMs > goneTimeoutMs) throw new SandboxError(`process ${firstPid} cannot be killed`);
    signalQuietly(firstPid, "SIGKILL");
    // Others have their turn also where nobody sleeps, which would take more than a short call does.
    await (passedMs < goneSoonMs ? othersTurn() : clock.sleep(goneLookMs));
  }
}
