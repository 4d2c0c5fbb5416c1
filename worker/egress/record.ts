/**
 * What a sandbox did with its network, for its answer.
 */
import { isDeepStrictEqual } from "node:util";
import type { NetworkRefusal, NetworkUsage } from "../protocol/execution.ts";

/** Different refusals that are kept of one sandbox; further ones are counted. */
export const maxRefusals = 50;

/** Counts of one sandbox. */
export class NetworkRecord implements NetworkUsage {
  connections = 0;
  sentBytes = 0;
  receivedBytes = 0;
  refused = 0;
  readonly refusals: NetworkRefusal[] = [];

  refuse(refusal: NetworkRefusal): void {
    this.refused++;
    const isKnown = this.refusals.some((one) => isDeepStrictEqual(one, refusal));
    if (!isKnown && this.refusals.length < maxRefusals) this.refusals.push(refusal);
  }
}
