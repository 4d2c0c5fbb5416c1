/**
 * Settings of the bubblewrap backend alone.
 */
import type { CheckName } from "../host-check.ts";

/** What an operator can say of bubblewrap. */
export interface BubblewrapSettings {
  /** Program file, or its name in the search path. */
  readonly bwrapBin: string;
  /** A Python that makes the sockets of sandboxes with a network of their own. */
  readonly pythonBin?: string;
  /** Checks that this host must pass; the usual ones unless given. */
  readonly minimum?: readonly CheckName[];
}
