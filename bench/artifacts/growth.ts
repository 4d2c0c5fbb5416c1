/**
 * By how much the resident memory of a process grows that moves an artifact of two gigabytes. Each
 * move has a process of its own, in which nothing has grown before.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Place } from "./places.ts";

const run = promisify(execFile);

const program = fileURLToPath(new URL("growth-process.ts", import.meta.url));

/** Bytes of the artifact. */
const bytes = 2_000_000_000;

/** The growth by one move. */
export interface Growth {
  readonly store: string;
  readonly work: "collect" | "stage";
  readonly bytes: number;
  readonly growthBytes: number;
}

/** Saves the artifact once at each place, then loads it. */
export async function measureGrowth(
  base: string,
  places: readonly Place[],
): Promise<readonly Growth[]> {
  const growths: Growth[] = [];
  for (const { name: store, config } of places) {
    if (config === undefined) continue;
    for (const work of ["collect", "stage"] as const) {
      const argv = [program, work, base, String(bytes), JSON.stringify(config)];
      const { stdout } = await run(process.execPath, argv, { timeout: 600_000 });
      growths.push({ store, work, bytes, growthBytes: Number(stdout) });
    }
  }
  return growths;
}
