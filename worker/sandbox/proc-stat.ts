/**
 * Reads single facts of a process from /proc.
 */
import { readFileSync } from "node:fs";

/** Fields of proc_pid_stat(5), by the numbers that they have there. */
const fields = { parent: 4, startTicks: 22 } as const;

/**
 * The number of a process's parent, or when the process was started, in ticks since the host's start. Undefined when the
 * process is gone or hidden from this user.
 */
export function procStat(pid: number, field: keyof typeof fields): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field, the program's name, may hold spaces and parentheses.
    const fromThird = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fromThird[fields[field] - 3]);
  } catch {
    return undefined;
  }
}
