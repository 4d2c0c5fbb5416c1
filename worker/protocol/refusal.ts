/**
 * The reason why a worker does not serve a tool of its manifest, for the operator and for callers.
 */

/** Reason why a tool is not served. */
export interface Refusal {
  /** For log and operator; may name paths of the host. */
  readonly reason: string;
  /** For callers; names no path of the host and no secret. */
  readonly publicReason: string;
  /** Whether an earlier entry of the tool goes on being served meanwhile. */
  readonly keepsServed?: boolean;
}

/** A refusal with a publishable reason; undefined without a reason. */
export function publicRefusal(reason: string): Refusal;
export function publicRefusal(reason: string | undefined): Refusal | undefined;
export function publicRefusal(reason: string | undefined): Refusal | undefined {
  return reason === undefined ? undefined : { reason, publicReason: reason };
}
