/**
 * Processes of a sandbox, seen from the host: what holds for them from their beginning on, and
 * waiting until they are gone.
 */
import { writeFileSync } from "node:fs";
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Clock } from "../../support/clock.ts";
import type { OpenFile } from "../proc/files.ts";
import {
  allChildrenOf,
  childrenOf,
  exists,
  firstOf,
  isGone,
  runNothing,
  signalQuietly,
  tellsChildren,
  threadsOf,
} from "../proc/processes.ts";
import { SandboxError } from "../sandbox.ts";

/**
 * Milliseconds in which a look follows the other at whether the sandbox's first process is gone:
 * bubblewrap exits about one before it.
 */
const goneSoonMs = 2;
/** Milliseconds between looks later on. */
const goneLookMs = 1;
/** Milliseconds before each look where only the next call waits: by then it is gone mostly. */
const patientLookMs = 5;
/** Milliseconds for which such a look only asks whether the process is there. */
const glanceMs = 50;
/**
 * Milliseconds after which processes that are still there are killed again and the sandbox is given
 * up.
 */
const goneTimeoutMs = 5_000;

/**
 * Leaves the memory of this process, and of all that it starts from now on, out of core dumps:
 * `kernel.core_pattern` may be a program that gets them whatever RLIMIT_CORE is. core(5)
 *
 * A process inherits it. Written to one that just begins another program it would be lost.
 */
export function leaveOutOfCoreDumps(): void {
  try {
    writeFileSync("/proc/self/coredump_filter", "0");
  } catch {
    // A kernel that writes no core dumps has no such file.
  }
}

/**
 * Kills a sandbox's command, and returns its number. Undefined where its first process has other
 * children, or this host does not tell.
 */
export function killCommand(childrenOfFirst: OpenFile | undefined): number | undefined {
  const [command, ...others] = firstOf(childrenOfFirst);
  if (command === undefined || others.length > 0 || !tellsChildren()) return undefined;
  signalQuietly(command, "SIGKILL");
  return command;
}

/** Whether a sandbox has no process beside its first one and a command that was killed. */
export function isAlone(command: number, firstPid: number): boolean {
  try {
    // It makes no other from now on (fork(2) fails). Children of a thread that ends become those of
    // another one, whose list may have been read: among several a second look finds them.
    const threads = threadsOf(command);
    const hasNone = (children: readonly number[]): boolean =>
      children.length === 0 && childrenOf(firstPid).every((child) => child === command);
    const first = hasNone(threads.flatMap((thread) => childrenOf(command, thread)));
    return first && (threads.length <= 1 || hasNone(allChildrenOf(command)));
  } catch {
    return false;
  }
}

/**
 * Waits until a sandbox's first process, and with it every other, is gone (pid_namespaces(7)), and
 * kills it meanwhile. They may be on their way out of the kernel still. Throws SandboxError when it
 * cannot be killed.
 *
 * @param isPatient whether nobody waits for it but the next call
 */
export async function awaitEnd(firstPid: number, clock: Clock, isPatient = false): Promise<void> {
  const beganMs = clock.monotonicMs();
  let passedMs = 0;
  // To look at a process that the kernel takes apart is to wait for the kernel.
  if (isPatient) await clock.sleep(patientLookMs);
  const hasEnded = (): boolean =>
    isPatient && passedMs < glanceMs ? !exists(firstPid) : runNothing(firstPid) || isGone(firstPid);
  while (!hasEnded()) {
    passedMs = clock.monotonicMs() - beganMs;
    if (passedMs > goneTimeoutMs) throw new SandboxError(`process ${firstPid} cannot be killed`);
    signalQuietly(firstPid, "SIGKILL");
    // Others have their turn also where nobody sleeps, which would take more than a short call
    // does.
    if (isPatient) await clock.sleep(patientLookMs);
    else await (passedMs < goneSoonMs ? othersTurn() : clock.sleep(goneLookMs));
  }
}
