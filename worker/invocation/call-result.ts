/**
 * The result of a call as the response that the worker publishes.
 */
import type { Delivery } from "../broker/broker.ts";
import type { CallEnd } from "./audit/call-audit.ts";
import { type ArtifactVersion, InvocationError, failureFacts } from "../protocol/errors.ts";
import type { Answer, Cancelled, Canceller, InvocationOutcome } from "../protocol/invocation.ts";
import { encodeResponse } from "../protocol/messages/response.ts";
import type { Clock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { EncodedResponse } from "./answers.ts";
import type { CallHistory } from "./claims/claims.ts";
import type { ReadRequest } from "./read-request.ts";
import { remainingOutputs } from "./steps/remaining.ts";

/** The result of a call that is answered. */
export interface CallResult {
  readonly response: EncodedResponse;
  /** For the audit log. */
  readonly end: CallEnd;
  /** Whether every later delivery of the call gets the same response. */
  readonly isFinal: boolean;
  /** Whether the response refuses a poison call. */
  readonly isPoison?: boolean;
  /** Whether another worker has published this response before. */
  readonly isRepeated?: boolean;
}

/** A retryable error of a call that has not started is not final: the next attempt may succeed. */
export function encodeResult(id: string, answer: Answer, started: boolean): CallResult {
  const mayTryAgain = !started && answer.kind === "error" && answer.error.retryable;
  const response = { id, payload: encodeResponse(id, answer), artifacts: artifactsOf(answer) };
  return { response, end: endOf(answer), isFinal: !mayTryAgain };
}

function artifactsOf(answer: Answer): readonly ArtifactVersion[] {
  if (answer.kind === "error") return answer.error.remainingArtifacts;
  if (answer.kind === "timeout") return [];
  return answer.createdArtifacts.map(({ filename, version }) => ({ filename, version }));
}

function endOf(answer: Answer): CallEnd {
  switch (answer.kind) {
    case "success":
      return "ok";
    case "timeout":
      return "SANDBOX_TIMEOUT";
    case "error":
      return answer.error.code;
  }
}

interface ResultParts {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Logger;
}

/** Logs and encodes the refusal of a call that has not started. */
export function refuseCall(
  { clock, log }: ResultParts,
  { topic }: Pick<Delivery, "topic">,
  { id, isProbe, receivedMs }: ReadRequest,
  reason: unknown,
): CallResult {
  const error = asInvocationError(reason);
  if (isProbe) logEvent(log, "tool.probed", { topic });
  else logEvent(log, "call.refused", { ...failureFacts(error), id, topic });
  const executionTimeMs = clock.monotonicMs() - receivedMs;
  return encodeResult(id, { kind: "error", error, executionTimeMs }, false);
}

/** Logs and encodes the answer of a call that was cancelled before it was admitted. */
export function cancelledResult(
  { clock, log }: ResultParts,
  { topic }: Pick<Delivery, "topic">,
  { id, receivedMs }: ReadRequest,
  by: Canceller,
  mayHaveStarted: boolean,
): CallResult {
  logEvent(log, "call.cancelled_ahead", { id, topic });
  const executionTimeMs = clock.monotonicMs() - receivedMs;
  const error = cancelledError({ started: false }, by, mayHaveStarted);
  return encodeResult(id, { kind: "error", error, executionTimeMs }, false);
}

/** The answer of a call that its caller, or a user of the console, cancelled. */
export function cancelledError(
  {
    started,
    remainingArtifacts = [],
  }: Pick<InvocationOutcome, "started"> & Pick<Cancelled, "remainingArtifacts">,
  by: Canceller,
  mayHaveStarted: boolean,
): InvocationError {
  const who = by === "caller" ? "The caller" : "An operator";
  const sentences = [
    started
      ? `${who} cancelled the call, and the tool was stopped`
      : `${who} cancelled the call before the tool started`,
    ...(mayHaveStarted ? ["An earlier delivery of the call may have run"] : []),
    ...(remainingArtifacts.length > 0 ? [remainingOutputs(remainingArtifacts)] : []),
  ];
  return new InvocationError("CANCELLED", sentences.join(". "), { remainingArtifacts });
}

/** The answer that another worker kept; `NOT_REPEATED` for one that was too large to keep. */
export function repeatAnswer(
  parts: ResultParts,
  delivery: Pick<Delivery, "topic" | "deliveryCount">,
  request: ReadRequest,
  { kind, answer }: Exclude<CallHistory, { kind: "open" }>,
): CallResult {
  if (answer === undefined) {
    const message = "The same request was answered before. The answer was too large to be kept";
    const refusal = new InvocationError("NOT_REPEATED", message);
    const refused = refuseCall(parts, delivery, request, refusal);
    return { ...refused, isFinal: true, isRepeated: true };
  }
  const { topic, deliveryCount } = delivery;
  logEvent(parts.log, "call.kept_answer_sent", { topic, deliveryCount });
  const response = { id: request.id, payload: answer };
  return { response, end: "duplicate", isFinal: true, isRepeated: kind === "answered" };
}

function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  return new InvocationError("INTERNAL_ERROR", "The worker could not handle the request", {
    cause: error,
  });
}
