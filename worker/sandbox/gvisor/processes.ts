/**
 * Processes of one container of gVisor, as the host sees them: each has the path of the bundle on
 * its command line.
 */
import { readdirSync } from "node:fs";
import type { Clock } from "../../support/clock.ts";
import { readProc } from "../proc/files.ts";
import { signalQuietly } from "../proc/processes.ts";
import { SandboxError } from "../sandbox.ts";

/** Milliseconds between two scans for processes that were killed. */
const scanMs = 2;
/** Scans in a row that have to find none: a process may be born behind the back of one. */
const quietScans = 2;
/** Milliseconds after which processes that are still there are given up. */
const goneTimeoutMs = 5_000;

/** Kills the processes that name a path. Returns one of them, or undefined when there is none. */
export function killNaming(path: string): number | undefined {
  const ids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  // A zombie has no command line.
  const found = ids.filter((id) => readProc(`/proc/${id}/cmdline`).includes(`${path}/`));
  for (const pid of found) signalQuietly(pid, "SIGKILL");
  return found[0];
}

/** Kills them until none is left. Throws SandboxError when one cannot be killed. */
export async function endNaming(path: string, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + goneTimeoutMs;
  for (let quiet = 0; quiet < quietScans;) {
    const left = killNaming(path);
    quiet = left === undefined ? quiet + 1 : 0;
    if (left !== undefined && clock.monotonicMs() > deadlineMs)
      throw new SandboxError(`process ${left} cannot be killed`);
    if (quiet < quietScans) await clock.sleep(scanMs);
  }
}
