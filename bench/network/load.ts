/**
 * What the fabric takes of a worker when it has much to move: its event loop and its memory.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Delays } from "../loop-delays.ts";

const run = promisify(execFile);

const program = fileURLToPath(new URL("load-process.ts", import.meta.url));

/** Bytes a second that are sent: 200 MiB. */
const aimedBytesPerSecond = 200 * 1024 * 1024;

const seconds = 10;
const timeoutMs = 120_000;

/** Bytes in one direction. */
export interface Load {
  readonly work: "download" | "upload";
  /** That came through. */
  readonly bytesPerSecond: number;
  readonly loop: Delays;
  /** Of the resident memory at its peak. */
  readonly growthBytes: number;
}

/** Takes both of processes in which nothing has grown before. */
export async function measureLoads(base: string): Promise<readonly Load[]> {
  const loads: Load[] = [];
  for (const work of ["download", "upload"] as const) {
    const argv = [program, base, work, String(aimedBytesPerSecond), String(seconds)];
    const { stdout } = await run(process.execPath, argv, { timeout: timeoutMs });
    loads.push(JSON.parse(stdout) as Load);
  }
  return loads;
}
