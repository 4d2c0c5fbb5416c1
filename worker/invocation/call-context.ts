/**
 * The contract of the invoker, and what it knows of a call besides the request.
 */
import type { Invocation, InvocationOutcome } from "../protocol/invocation.ts";
import type { StatusListener } from "../protocol/messages/status-details.ts";
import type { CallFollower } from "../telemetry/call-follower.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { CallAudit } from "./audit/call-audit.ts";
import type { Claimed } from "./claims/claims.ts";

/** Context of a running call. */
export interface CallContext {
  /** Aborts when the worker cancels all calls. */
  readonly signal: AbortSignal;
  /** Aborts when the worker cancels calls without a slot. */
  readonly waitSignal: AbortSignal;
  /** Aborts when the caller cancels the call. */
  readonly cancelSignal?: AbortSignal;
  readonly log: Logger;
  readonly onStatus: StatusListener;
  /** Undefined where no other worker can receive the call. */
  readonly claimed?: Claimed;
  /**
   * Call when the call's tool waits for calls by other workers, which may call this one. Undefined
   * where the broker limits no deliveries.
   */
  readonly onWaiting?: (() => void) | undefined;
  /** Whether a tool of this worker makes the call. Default: false. */
  readonly isInner?: boolean;
  /** Undefined without an audit log. */
  readonly audit?: CallAudit | undefined;
  /** Undefined where nobody follows the call. */
  readonly follower?: CallFollower;
}

export interface Invoker {
  /** Never throws: every failure is an outcome. */
  invoke(invocation: Invocation, context: CallContext): Promise<InvocationOutcome>;
}
