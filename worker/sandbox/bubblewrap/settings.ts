/**
 * Settings of the bubblewrap backend alone.
 */
import type { CheckName } from "../host-check.ts";
import type { TryHost } from "./probe/probe.ts";

/** What only bubblewrap is opened with. */
export interface BubblewrapSettings {
  /** Program file, or its name in the search path. */
  readonly bwrapBin: string;
  /** A Python that makes the sockets of sandboxes with a network of their own. */
  readonly pythonBin?: string;
  /** Checks that this host must pass; the usual ones unless given. */
  readonly minimum?: readonly CheckName[];
  /** Runs the trials of this host; each backend runs its own unless given. */
  readonly tryHost?: TryHost | undefined;
}
