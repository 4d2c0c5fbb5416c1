/**
 * What a sandbox did with its network, for the answer and the log.
 */
import type { Dialled } from "./policy.ts";

/** Refusals that are kept of one sandbox; further ones are counted. */
export const maxRefusals = 50;

/** Why a connection was refused. */
export type RefusalReason =
  | "no-rule"
  | "unknown-address"
  | "not-public"
  | "worker"
  | "name-not-found"
  | "unreachable"
  | "sni"
  | "not-tls"
  | "too-many-connections";

/** One connection that was refused. */
export interface Refusal {
  readonly host: string;
  readonly port: number;
  readonly reason: RefusalReason;
}

/** Counts of one sandbox. */
export class NetworkRecord {
  readonly refusals: Refusal[] = [];
  refused = 0;
  connections = 0;
  sentBytes = 0;
  receivedBytes = 0;

  refuse(dialled: Dialled, reason: RefusalReason): void {
    this.refused++;
    const host = dialled.kind === "name" ? dialled.name : dialled.address;
    const { port } = dialled;
    const isKnown = this.refusals.some(
      (one) => one.host === host && one.port === port && one.reason === reason,
    );
    if (!isKnown && this.refusals.length < maxRefusals) this.refusals.push({ host, port, reason });
  }
}
