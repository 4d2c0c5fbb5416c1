/**
 * The memory that is given back when some processes end, because nobody else has it.
 */
import { readFile } from "node:fs/promises";
import { ProcessTree } from "../../accounting/process-tree.ts";

/** Lines of /proc/PID/smaps_rollup (proc_pid_smaps(5)). */
const privateLine = /^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm;

/**
 * Bytes that only a process and those that descend from it have. What the kernel does not show
 * counts as nothing.
 */
export async function privateBytesOf(pid: number): Promise<number> {
  const processes = new ProcessTree(pid).sample(false);
  const rollups = await Promise.all(
    // The kernel walks through page tables for it: not in this thread.
    processes.map(({ place }) => readFile(`${place}/smaps_rollup`, "latin1").catch(() => "")),
  );
  const kibibytes = rollups.flatMap((text) =>
    [...text.matchAll(privateLine)].map(([, size]) => size),
  );
  return kibibytes.reduce((sum, size) => sum + Number(size) * 1024, 0);
}
