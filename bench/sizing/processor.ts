/**
 * Processor time of processes and of the machine, by proc(5).
 */
import { readFile } from "node:fs/promises";

/** Clock ticks a second of all times in /proc: 100 on every platform of Linux. */
const ticksPerSecond = 100;

/** Seconds of a process or thread without its children, by a line of `/proc/PID/stat`. */
export function secondsOf(line: string): number {
  // The second field, the name, may hold spaces and parentheses; the first here is the third.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Seconds in which the machine's processors had work, or another machine had them (`steal`). */
export function busySeconds(stat: string): number {
  const [line = ""] = stat.split("\n", 1);
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond;
}

/** Of a process so far, and of its first thread alone: in Node, the event loop. */
export async function processSeconds(pid: number): Promise<{ all: number; loop: number }> {
  const [all, loop] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "utf8"),
    readFile(`/proc/${pid}/task/${pid}/stat`, "utf8"),
  ]);
  return { all: secondsOf(all), loop: secondsOf(loop) };
}

/** Busy seconds of the machine since its start. */
export async function machineSeconds(): Promise<number> {
  return busySeconds(await readFile("/proc/stat", "utf8"));
}
