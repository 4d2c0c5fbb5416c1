/**
 * Names of sandboxes' groups, by which a later worker finds those of a dead one.
 */
import { readlinkSync } from "node:fs";
import type { NewId } from "../../support/ids.ts";
import { exists } from "../proc/processes.ts";
import { readStat } from "../proc/stat.ts";

/** Only pid namespace, pid and start time together identify a process for ever. */
const pattern = /^str-sandbox-(?<namespace>\d+)-(?<pid>\d+)-(?<start>\d+)-[0-9a-f-]+$/;

/** Makes names of this process, each once. */
export function cgroupNames(newId: NewId): () => string {
  const { pid } = process;
  const prefix = `str-sandbox-${pidNamespace()}-${pid}-${startTicksOf(pid) ?? 0}`;
  return () => `${prefix}-${newId()}`;
}

/** Whether a dead worker of this pid namespace made a group. Of other namespaces none is known. */
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
