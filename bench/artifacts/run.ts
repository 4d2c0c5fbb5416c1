/**
 * What it costs to move artifacts of calls, by store and size.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { startTimeoutMs } from "../environment.ts";
import { measureGrowth } from "./growth.ts";
import { measureMoves } from "./moves.ts";
import { openPlaces } from "./places.ts";
import type { MeasuredArtifacts } from "./table.ts";

/** Two gigabytes do not fit into memory twice. */
const disk = "/var/tmp";

/** Starts the servers of the stores, and measures everything. */
export async function measureArtifacts(rounds: number): Promise<MeasuredArtifacts> {
  await using stack = new AsyncDisposableStack();
  const base = await mkdtemp(join(disk, "str-bench-"));
  stack.defer(() => rm(base, { recursive: true, force: true }));
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = base;
  stack.defer(() => {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  });
  const places = await openPlaces(base, stack);
  for (const { store } of places) await store.check(AbortSignal.timeout(startTimeoutMs));
  const moves = await measureMoves(base, places, rounds);
  return { moves, growths: await measureGrowth(base, places) };
}
