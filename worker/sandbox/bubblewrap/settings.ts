/**
 * Settings of the bubblewrap backend alone.
 */
import type { CheckName } from "../host-check.ts";
import type { tryGroups } from "../cgroup/trial.ts";
import type { TryHost, identify } from "./probe/probe.ts";

/** What only bubblewrap is opened with. */
export interface BubblewrapSettings {
  /** Program file, or its name in the search path. */
  readonly bwrapBin: string;
  /** A Python that makes the sockets of sandboxes with a network of their own. */
  readonly pythonBin?: string;
  /** Checks that this host must pass; the usual ones unless given. */
  readonly minimum?: readonly CheckName[];
  /** Asks the program for its version; each backend asks itself unless given. */
  readonly identify?: typeof identify | undefined;
  /** Tries control groups; each backend tries them itself unless given. */
  readonly tryGroups?: typeof tryGroups | undefined;
  /** Runs the trials of this host; each backend runs its own unless given. */
  readonly tryHost?: TryHost | undefined;
}
