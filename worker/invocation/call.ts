/**
 * One decoded call: runs the invoker, publishes the statuses, decides between answer and requeue.
 */
import type { BrokerSession } from "../broker/broker.ts";
import { InvocationError, failureFacts } from "../protocol/errors.ts";
import type {
  Answer,
  CancelReason,
  Cancelled,
  Canceller,
  Invocation,
  InvocationOutcome,
} from "../protocol/invocation.ts";
import { encodeStatus } from "../protocol/messages/status.ts";
import type { Clock } from "../support/clock.ts";
import type { CallFollower } from "../telemetry/call-follower.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { CallLog } from "../telemetry/call-log.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { CallAudit } from "./audit/call-audit.ts";
import { cancelledError } from "./call-result.ts";
import type { Claimed } from "./claims/claims.ts";
import type { CallContext, Invoker } from "./call-context.ts";
import { remainingOutputs } from "./steps/remaining.ts";
import { type RelayReport, type RelayedStatus, StatusRelay } from "./steps/status-relay.ts";

/** Dependencies of a call. */
export interface CallParts {
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly invoker: Invoker;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Signals of a worker that stops, in the order in which it aborts them. */
export interface CallSignals {
  /** Cancels calls without a slot. */
  readonly wait: AbortSignal;
  /** Cancels every call. */
  readonly run: AbortSignal;
  /** Ends the publishing of answers. */
  readonly publish: AbortSignal;
}

/** Signals of a call. */
export interface RunSignals extends CallSignals {
  /** The caller cancels the call. */
  readonly cancel: AbortSignal;
}

/** Who looks on while a call runs. */
export interface CallWatchers extends Pick<CallContext, "onWaiting"> {
  /** Undefined without an audit log. */
  readonly audit: CallAudit | undefined;
  readonly follower: CallFollower;
}

/** Created once: an `Error` per call costs more than the rest of the cleanup. */
const callIsOver = new Error("the call is over");

/** Runs a call. Without an answer the call is requeued. Never throws. */
export async function runCall(
  parts: CallParts,
  invocation: Invocation,
  claimed: Claimed,
  signals: RunSignals,
  { audit, follower, onWaiting }: CallWatchers,
): Promise<{ readonly answer: Answer | undefined; readonly started: boolean }> {
  const { id, taskId, toolName: tool } = invocation;
  const log = new CallLog(parts.log, { id, taskId, tool });
  logEvent(log, "call.received");
  // No status follows the answer, neither this worker's nor another's. Most calls have none.
  let over: AbortController | undefined;
  const relay = new StatusRelay((status) => {
    follower.status?.(status.text);
    over ??= new AbortController();
    const signal = AbortSignal.any([signals.publish, over.signal]);
    return publishStatus({ ...parts, log }, invocation, status, signal);
  }, parts.clock);
  const outcome = await parts.invoker.invoke(invocation, {
    signal: signals.run,
    waitSignal: signals.wait,
    cancelSignal: signals.cancel,
    log,
    onStatus: (text, details) => relay.push({ text, details }),
    claimed,
    audit,
    follower,
    onWaiting,
  });
  const statuses = await relay.finish();
  over?.abort(callIsOver);
  const answer = answerOf(outcome, parts.session.redelivers, claimed);
  const { started } = outcome;
  const isCancelled = outcome.kind === "cancelled" && isAnswered(outcome.reason);
  logEnding(log, isCancelled ? outcome : (answer ?? outcome), started, statuses);
  return { answer, started };
}

type Stopped = Extract<InvocationOutcome, { kind: "cancelled" }>;

/** Whether a call that was cancelled for this reason is answered, and runs nowhere else. */
function isAnswered(reason: CancelReason): reason is Canceller {
  return reason === "caller" || reason === "operator";
}

/**
 * Undefined for a call to requeue, which one that its caller cancelled never is. A call that must
 * not run twice is requeued only before its start, and only where the next worker can know that it
 * has not started.
 */
function answerOf(
  outcome: InvocationOutcome,
  redelivers: boolean,
  { claim, mayHaveStarted }: Claimed,
): Answer | undefined {
  if (outcome.kind !== "cancelled") return outcome;
  const { reason, idempotent, started, executionTimeMs, execution } = outcome;
  if (reason === "elsewhere") return undefined;
  if (isAnswered(reason)) {
    const error = cancelledError(outcome, reason, mayHaveStarted);
    return { kind: "error", error, executionTimeMs, execution };
  }
  if (redelivers && (idempotent || (claim.isCertain && !started))) return undefined;
  return { kind: "error", error: stopped(outcome), executionTimeMs };
}

/** Agents retry `TOOL_NOT_AVAILABLE`, which a call that has started must not get. */
function stopped({ started, idempotent, remainingArtifacts = [] }: Stopped): InvocationError {
  if (!started) return new InvocationError("TOOL_NOT_AVAILABLE", "The worker is shutting down");
  const sentences = [
    "The tool was stopped because the worker is shutting down",
    ...(idempotent ? [] : ["Its manifest entry forbids to run the call again"]),
    ...(remainingArtifacts.length > 0 ? [remainingOutputs(remainingArtifacts)] : []),
  ];
  return new InvocationError("SANDBOX_FAILED", sentences.join(". "), { remainingArtifacts });
}

async function publishStatus(
  { session, clock, log }: CallParts,
  { taskId, statusTo }: Invocation,
  { text, details }: RelayedStatus,
  signal: AbortSignal,
): Promise<void> {
  logEvent(log, "tool.status", { text });
  // The worker drains the pipe all the same, so that the tool never blocks on it.
  if (statusTo === undefined) return;
  try {
    const payload = encodeStatus(taskId, text, clock.nowMs(), details);
    await session.publish({ topic: statusTo, payload, isStatus: true }, signal);
  } catch (error) {
    logEvent(log, "status.publish_failed", { err: error });
    throw error;
  }
}

function logEnding(
  log: Logger,
  ending: Answer | Cancelled,
  started: boolean,
  statuses: RelayReport,
): void {
  const facts = { durationMs: ending.executionTimeMs, statuses };
  switch (ending.kind) {
    case "success":
      logEvent(log, "call.finished", { ...facts, artifacts: ending.createdArtifacts.length });
      break;
    case "timeout":
      logEvent(log, "call.timed_out", { ...facts, started, code: "SANDBOX_TIMEOUT" });
      break;
    case "error":
      logEvent(log, "call.failed", { ...facts, ...failureFacts(ending.error) });
      if (!ending.error.quotesArguments) logEvent(log, "call.failure_cause", { err: ending.error });
      break;
    case "cancelled":
      logEvent(log, "call.cancelled", { ...facts, reason: ending.reason, started });
      break;
  }
}
