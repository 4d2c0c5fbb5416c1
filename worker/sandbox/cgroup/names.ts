/**
 * Names of sandboxes' groups, from which a later worker can tell whether their worker is dead.
 */
import { readlinkSync } from "node:fs";
import type { NewId } from "../../support/ids.ts";
import { exists } from "../proc/processes.ts";
import { readStat } from "../proc/stat.ts";

/**
 * The number of a process means something in its pid namespace only, and may be another process's
 * later: so the namespace and the time of its start, in ticks since the host's, stand beside it.
 */
const pattern = /^str-sandbox-(?<namespace>\d+)-(?<pid>\d+)-(?<start>\d+)-[0-9a-f-]+$/;

/** Makes names of this process, each once. */
export function cgroupNames(newId: NewId): () => string {
  const { pid } = process;
  const prefix = `str-sandbox-${pidNamespace()}-${pid}-${startTicksOf(pid) ?? 0}`;
  return () => `${prefix}-${newId()}`;
}

/**
 * Whether a group was made by a worker of this pid namespace that is dead. Of others nothing is
 * known.
 */
export function isLeftBehind(name: string): boolean {
  const { namespace, pid, start } = pattern.exec(name)?.groups ?? {};
  if (pid === undefined || namespace !== pidNamespace()) return false;
  if (!exists(Number(pid))) return true;
  // It may be hidden from this user (proc(5), hidepid): then it counts as alive.
  const present = startTicksOf(Number(pid));
  return present !== undefined && present !== Number(start);
}

/** The number of the pid namespace (pid_namespaces(7)). */
function pidNamespace(): string {
  return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
}

function startTicksOf(pid: number): number | undefined {
  return readStat(`/proc/${pid}`)?.startTicks;
}
