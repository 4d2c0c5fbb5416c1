/**
 * What a sandbox did with its network, for its answer.
 */
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
  readonly #known = new Set<string>();

  refuse(refusal: NetworkRefusal): void {
    this.refused++;
    if (this.refusals.length >= maxRefusals) return;
    const key = `${refusal.reason} ${refusal.port} ${refusal.host}`;
    if (!this.#known.has(key)) this.refusals.push(refusal);
    this.#known.add(key);
  }
}
