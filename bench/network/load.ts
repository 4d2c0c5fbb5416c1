/**
 * What the fabric takes of a worker when it has much to move: its event loop and its memory.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Delays } from "../loop-delays.ts";

const run = promisify(execFile);

const program = fileURLToPath(new URL("load-process.ts", import.meta.url));

/** Bytes a second that the server gives: 200 MiB. */
const aimedBytesPerSecond = 200 * 1024 * 1024;

const seconds = 10;
const timeoutMs = 120_000;

/** One download. */
export interface Load {
  /** That came through. */
  readonly bytesPerSecond: number;
  readonly loop: Delays;
  /** Of the resident memory at its peak. */
  readonly growthBytes: number;
}

/** Takes it of a process in which nothing has grown before. */
export async function measureLoad(base: string): Promise<Load> {
  const argv = [program, base, String(aimedBytesPerSecond), String(seconds)];
  const { stdout } = await run(process.execPath, argv, { timeout: timeoutMs });
  return JSON.parse(stdout) as Load;
}
