/**
 * Memory of processes: pages that several share count for each in part (PSS of proc(5)).
 */
import { readFile } from "node:fs/promises";

const bytesPerKibibyte = 1024;

/** Bytes of a process, by `/proc/PID/smaps_rollup`. */
export function proportionalBytes(rollup: string): number {
  const [, kibibytes = "0"] = /^Pss:\s+(\d+) kB$/m.exec(rollup) ?? [];
  return Number(kibibytes) * bytesPerKibibyte;
}

/** Bytes of processes together. One that has ended has none. */
export async function memoryOf(pids: readonly number[]): Promise<number> {
  const rollups = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "")),
  );
  return rollups.reduce((sum, rollup) => sum + proportionalBytes(rollup), 0);
}
