/**
 * Shared reasons for baselines that cannot reach their target on this host.
 */
import { readFileSync } from "node:fs";
import type { Attack } from "../attack.ts";

type NoBaseline = NonNullable<Attack["noBaseline"]>;

/** SECCOMP_MODE_FILTER in /proc/PID/status (proc(5)). */
const filtered = /^Seccomp:\s*2$/m;

/** Where a container masks its /proc, a baseline has none either. */
export const needsProc: NoBaseline = (unenforced) =>
  unenforced.includes("fresh-proc") ? "no /proc can be mounted on this host" : undefined;

/** A container's filter also holds for baselines. */
export const unlessFiltered: NoBaseline = () =>
  filtered.test(ownStatus())
    ? "this process is under a filter of system calls, as in a container, and so are baselines"
    : undefined;

/** The first reason that applies. */
export function anyOf(...reasons: readonly NoBaseline[]): NoBaseline {
  return (unenforced) => reasons.map((reason) => reason(unenforced)).find((text) => text);
}

function ownStatus(): string {
  return readFileSync("/proc/self/status", "utf8");
}
