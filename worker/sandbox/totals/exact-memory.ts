/**
 * What processes hold in memory together, each page counted once.
 */
import { readFile } from "node:fs/promises";
import { deviceName } from "./held-files.ts";
import type { SeenProcess } from "./process-tree.ts";

/**
 * Bytes that processes hold, where pages that several share count for each by its part (`Pss` of proc_pid_smaps(5)).
 * Undefined where the kernel does not show that to this process.
 *
 * The kernel walks through page tables for it, which takes a millisecond for some hundred megabytes: not in this thread, and
 * for one process after the other.
 *
 * @param leftOut devices whose files, where they are mapped, count elsewhere
 */
export async function exactBytes(
  processes: readonly SeenProcess[],
  leftOut: readonly number[],
): Promise<number | undefined> {
  const names = leftOut.map(deviceName);
  let sum = 0;
  for (const { pid, sharedBytes } of processes) {
    const rollup = await textOf(`/proc/${pid}/smaps_rollup`);
    // A process that has ended meanwhile holds nothing; one that is not shown leaves everything open.
    if (rollup === "") continue;
    if (rollup?.includes("\nPss_Anon:") !== true) return undefined;
    sum += sumOf(rollup, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm);
    if (sharedBytes > 0 && names.length > 0)
      sum -= mappedOf((await textOf(`/proc/${pid}/smaps`)) ?? "", names);
  }
  return Math.max(0, sum);
}

/** Mappings that are shared, with their device and what follows up to the next. */
const sharedMappings =
  /^[0-9a-f]+-[0-9a-f]+ ..?.s [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) .*\n((?:[A-Z].*\n)*)/gm;

function mappedOf(smaps: string, devices: readonly string[]): number {
  let sum = 0;
  for (const [, device = "", lines = ""] of smaps.matchAll(sharedMappings))
    if (devices.includes(device)) sum += sumOf(lines, /^(?:Pss|SwapPss):\s+(\d+) kB$/gm);
  return sum;
}

function sumOf(text: string, line: RegExp): number {
  return [...text.matchAll(line)].reduce((sum, [, kibibytes]) => sum + Number(kibibytes) * 1024, 0);
}

/** Empty when the process is gone; undefined when it may not be looked at. */
async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "latin1").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" || error.code === "ESRCH" ? "" : undefined,
  );
}
