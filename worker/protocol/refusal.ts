/**
 * Why a worker does not serve a tool of its manifest: one text for the operator, one for callers.
 */

/** Why a tool is not served. */
export interface Refusal {
  /** For log and operator: may name paths of the host. */
  readonly reason: string;
  /** For callers: names no path of the host and no secret. */
  readonly publicReason: string;
}

/** A refusal whose reason callers may read as it is; undefined without one. */
export function publicRefusal(reason: string): Refusal;
export function publicRefusal(reason: string | undefined): Refusal | undefined;
export function publicRefusal(reason: string | undefined): Refusal | undefined {
  return reason === undefined ? undefined : { reason, publicReason: reason };
}
