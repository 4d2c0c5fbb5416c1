/**
 * A host where everything holds: what is known of it, and what a trial sandbox shows there.
 */
import type { HostSettings } from "../../../../worker/sandbox/bubblewrap/probe/host-settings.ts";
import type { TrialObservation } from "../../../../worker/sandbox/bubblewrap/probe/probe-script.ts";

/** The number of the worker's network namespace. */
export const workerNetwork = 4_026_531_840;

/** One of profile `restrictive`, with changes. */
export function observation(changes: Partial<TrialObservation> = {}): TrialObservation {
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

/** What is known of the host, with changes. */
export function settings(changes: Partial<HostSettings> = {}): HostSettings {
  return {
    container: undefined,
    uid: 1000,
    isFiltered: false,
    maxUserNamespaces: 15_000,
    unprivilegedUsernsClone: undefined,
    appArmorRestrictsUserns: undefined,
    pipesCoreDumps: false,
    ...changes,
  };
}
