/**
 * What processes hold in memory together, each page counted once.
 */
import { readFile } from "node:fs/promises";
import { deviceName } from "./mappings.ts";
import type { SeenProcess } from "./process-tree.ts";

/** Bytes that processes hold together. */
export interface ExactMemory {
  /** Their own pages, those that they share by a fork and those that are swapped out included, and page tables. */
  readonly ownBytes: number;
  /** Pages of shared memory that some of them map. */
  readonly sharedBytes: number;
}

/**
 * What processes hold, where pages that several share count for each by its part (`Pss` of proc_pid_smaps(5)). Undefined where
 * the kernel does not show that to this process.
 *
 * The kernel walks through page tables for it, which takes a millisecond for some hundred megabytes: not in this thread, and
 * for one process after the other.
 *
 * @param leftOut devices whose files, where they are mapped, count elsewhere
 */
export async function exactMemory(
  processes: readonly SeenProcess[],
  leftOut: readonly number[],
): Promise<ExactMemory | undefined> {
  const names = leftOut.map(deviceName);
  let [ownBytes, sharedBytes] = [0, 0];
  for (const process of processes) {
    const rollup = await textOf(`${process.place}/smaps_rollup`);
    // A process that has ended meanwhile holds nothing; one that is not shown leaves everything open.
    if (rollup === "") continue;
    if (rollup?.includes("\nPss_Anon:") !== true) return undefined;
    ownBytes += process.tableBytes + sumOf(rollup, /^(?:Pss_Anon|SwapPss):\s+(\d+) kB$/gm);
    sharedBytes += sumOf(rollup, /^Pss_Shmem:\s+(\d+) kB$/gm);
    if (process.sharedBytes === 0 || names.length === 0) continue;
    const mapped = mappedOf((await textOf(`${process.place}/smaps`)) ?? "", names);
    ownBytes -= sumOf(mapped, /^SwapPss:\s+(\d+) kB$/gm);
    sharedBytes -= sumOf(mapped, /^Pss:\s+(\d+) kB$/gm);
  }
  return { ownBytes: Math.max(0, ownBytes), sharedBytes: Math.max(0, sharedBytes) };
}

/** Mappings that are shared, with their device and what follows up to the next. */
const sharedMappings =
  /^[0-9a-f]+-[0-9a-f]+ ..?.s [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) .*\n((?:[A-Z].*\n)*)/gm;

/** What is told of shared mappings of these devices. */
function mappedOf(smaps: string, devices: readonly string[]): string {
  const all = [...smaps.matchAll(sharedMappings)];
  return all.map(([, device = "", lines = ""]) => (devices.includes(device) ? lines : "")).join("");
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
