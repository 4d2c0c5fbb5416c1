/**
 * What a sandbox did with its network, for its answer.
 */
import type { NetworkRefusal, NetworkUsage, RefusalReason } from "../protocol/execution.ts";
import type { Destination } from "./policy.ts";

/** Different refusals that are kept of one sandbox; further ones are counted. */
export const maxRefusals = 50;

/** Counts of one sandbox. */
export class NetworkRecord implements NetworkUsage {
  connections = 0;
  sentBytes = 0;
  receivedBytes = 0;
  refused = 0;
  readonly refusals: NetworkRefusal[] = [];

  refuse(destination: Destination, reason: RefusalReason): void {
    this.refused++;
    const host = destination.kind === "name" ? destination.name : destination.address;
    const { port } = destination;
    const isKnown = this.refusals.some(
      (one) => one.host === host && one.port === port && one.reason === reason,
    );
    if (!isKnown && this.refusals.length < maxRefusals) this.refusals.push({ host, port, reason });
  }
}
