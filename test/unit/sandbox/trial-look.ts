/**
 * What a trial sandbox shows on a host where everything holds, for tests.
 */
import type { Look } from "../../../worker/sandbox/bubblewrap/inside.ts";

/** The number of the worker's network namespace. */
export const workerNetwork = 4_026_531_840;

/** One of profile `restrictive`, with changes. */
export function look(changes: Partial<Look> = {}): Look {
  return {
    profile: "restrictive",
    program: "/usr/bin/bwrap",
    network: "none",
    networkNamespace: workerNetwork + 1,
    nested: "unshare: unshare failed: Operation not permitted",
    proc: "own",
    filters: 1,
    wrongLimits: [],
    startedProcesses: 5,
    endless: [],
    seesProcesses: true,
    seesFiles: true,
    ...changes,
  };
}
