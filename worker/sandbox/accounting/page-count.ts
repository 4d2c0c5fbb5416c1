/**
 * What processes hold in memory together, each page counted once.
 */
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { deviceName } from "../proc/device-name.ts";
import type { SeenProcess } from "./process-tree.ts";

/** Bytes of one process's list of mappings that are read: some ten thousand mappings. */
const maxListBytes = 8 * 1024 * 1024;

/** Bytes that processes hold together. */
export interface ExactMemory {
  /**
   * Their own pages, those that they share by a fork and those that are swapped out included, and
   * page tables.
   */
  readonly ownBytes: number;
  /** Pages of shared memory that some of them map. */
  readonly sharedBytes: number;
}

/**
 * What processes hold, where pages that several share count for each by its part (`Pss` of
 * proc_pid_smaps(5)). Undefined where the kernel does not show that to this process.
 *
 * The kernel walks through page tables for it, which takes a millisecond for some hundred
 * megabytes: not in this thread, and for one process after the other.
 *
 * @param leftOut devices whose files, where they are mapped, count elsewhere
 * @param enough bytes at which the count ends, with as much as it has come to
 */
export async function exactMemory(
  processes: readonly SeenProcess[],
  leftOut: readonly number[],
  enough: number,
): Promise<ExactMemory | undefined> {
  const names = leftOut.map(deviceName);
  let [ownBytes, sharedBytes] = [0, 0];
  for (const process of processes) {
    if (ownBytes + sharedBytes > enough) break;
    const rollup = await textOf(`${process.place}/smaps_rollup`);
    // A process that has ended meanwhile holds nothing; one that is not shown leaves everything
    // open.
    if (rollup === "") continue;
    if (rollup?.includes("\nPss_Anon:") !== true) return undefined;
    ownBytes += process.tableBytes + sumOf(rollup, /^(?:Pss_Anon|SwapPss):\s+(\d+) kB$/gm);
    sharedBytes += sumOf(rollup, /^Pss_Shmem:\s+(\d+) kB$/gm);
    if (process.sharedBytes === 0 || names.length === 0) continue;
    const mapped = await mappedOf(`${process.place}/smaps`, names);
    ownBytes -= mapped.swappedBytes;
    sharedBytes -= mapped.bytes;
  }
  return { ownBytes: Math.max(0, ownBytes), sharedBytes: Math.max(0, sharedBytes) };
}

/**
 * A mapping, with whether it is shared and its device, or one of the facts about it that count
 * here, in this order.
 */
const smapsLine =
  /^(?:[0-9a-f]+-[0-9a-f]+ ...([ps]) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) .*|(Rss|Pss|Anonymous|SwapPss):\s+(\d+) kB)$/gm;

/**
 * What mappings of files on these devices hold. Of a list that is longer than any honest one its
 * beginning has to do: what is missing counts twice then.
 */
async function mappedOf(
  path: string,
  devices: readonly string[],
): Promise<{ readonly bytes: number; readonly swappedBytes: number }> {
  const found = { bytes: 0, swappedBytes: 0 };
  let mapping: "none" | "shared" | "private" = "none";
  let facts = { Rss: 0, Pss: 0, Anonymous: 0 };
  for await (const lines of piecesOf(path)) {
    for (const [, kind, device = "", fact, kibibytes] of lines.matchAll(smapsLine)) {
      const bytes = Number(kibibytes) * 1024;
      if (kind !== undefined) {
        const isOfDevice = devices.includes(device);
        mapping = isOfDevice ? (kind === "s" ? "shared" : "private") : "none";
        facts = { Rss: 0, Pss: 0, Anonymous: 0 };
      } else if (mapping !== "none" && fact !== "SwapPss") {
        facts[fact as keyof typeof facts] = bytes;
      } else if (mapping === "shared") {
        found.bytes += facts.Pss;
        found.swappedBytes += bytes;
      } else if (mapping === "private" && facts.Rss > 0) {
        // Pages that were written to are the process's own, the others the file's.
        found.bytes += facts.Pss * (1 - facts.Anonymous / facts.Rss);
      }
    }
  }
  return found;
}

/**
 * Whole lines of a file, some at a time, up to {@link maxListBytes}; nothing more when the process
 * is gone.
 */
async function* piecesOf(path: string): AsyncGenerator<string, void> {
  try {
    let rest = "";
    for await (const piece of createReadStream(path, { encoding: "latin1", end: maxListBytes })) {
      const text = rest + (piece as string);
      const end = text.lastIndexOf("\n") + 1;
      yield text.slice(0, end);
      rest = text.slice(end);
    }
  } catch {
    // There is no more of it.
  }
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
