/**
 * One call: from the bytes of its request to what it is answered, or to being requeued.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";
import type { ToolEntry, UnavailableTool } from "../manifest/manifest.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Answer, Cancelled, Invocation, InvocationOutcome } from "../protocol/invocation.ts";
import {
  type ReplyAddress,
  decodeRequest,
  isProbe,
  readId,
  unknownId,
} from "../protocol/request.ts";
import { encodeResponse } from "../protocol/response.ts";
import { encodeStatus } from "../protocol/status.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import type { Clock } from "../support/clock.ts";
import type { Semaphore } from "../support/semaphore.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { withSendingTime } from "./age.ts";
import type { EncodedResponse } from "./answers.ts";
import type { Claimed } from "./claims/claims.ts";
import { mayRequeue } from "./unserved.ts";
import type { Invoker } from "./invoker.ts";
import { type TopicTools, readDocument } from "./read-request.ts";
import { requireRepeatable } from "./claims/redelivery.ts";
import { notAvailable } from "./steps/resolve.ts";
import { type RelayReport, StatusRelay } from "./steps/status-relay.ts";

/** What calls are handled with. */
export interface CallParts {
  readonly namespace: string;
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly invoker: Invoker;
  readonly topicTools: TopicTools;
  /** A tool that is served. */
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  /** A tool of the manifest that is not served, with the reason. */
  readonly unavailable: (toolName: string) => UnavailableTool | undefined;
  /**
   * Turns for requests that are parsed by threads of their own, so that many of them do not become
   * many threads.
   */
  readonly largeRequests: Semaphore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What a worker cancels when it stops, one after the other. */
export interface CallSignals {
  /** Calls that have no slot yet. */
  readonly wait: AbortSignal;
  /** Every call. */
  readonly run: AbortSignal;
  /** Publishing answers. */
  readonly publish: AbortSignal;
}

/** The result of a call that is answered. */
export interface CallResult {
  readonly response: EncodedResponse;
  /** Whether every later delivery of the call gets the same response. */
  readonly isFinal: boolean;
  /** Whether the response refuses a poison call. */
  readonly isPoison?: boolean;
  /** Whether another worker has published this response before. */
  readonly isRepeated?: boolean;
}

/** Made once: an error costs more than all else that is done to end the statuses of a call. */
const callIsOver = new Error("the call is over");

/**
 * Runs the call of a delivery. Returns what goes out for it, or undefined when it is requeued: the
 * broker hands it to another worker, or here again. Never throws.
 */
export async function runCall(
  parts: CallParts,
  delivery: Delivery,
  address: ReplyAddress,
  signals: CallSignals,
  claimed: Claimed,
): Promise<CallResult | undefined> {
  const startMs = parts.clock.monotonicMs();
  let id = unknownId;
  let isQuestion = false;
  try {
    const document = await readDocument(delivery.payload, parts.largeRequests, signals.publish);
    id = readId(document);
    isQuestion = isProbe(document);
    if (isLeftToOthers(parts, delivery, claimed)) return undefined;
    const dated = withSendingTime(address, delivery, parts.session);
    const request = decodeRequest(document, dated, parts.clock.nowMs());
    const invocation = parts.topicTools.callOf(delivery.topic, request);
    const { answer, started } = await invoke(parts, invocation, claimed, signals);
    return answer && resultOf(id, answer, started);
  } catch (thrown) {
    const error = asInvocationError(thrown);
    if (isQuestion) logEvent(parts.log, "tool.probed", { topic: delivery.topic });
    else logRefusal(parts, delivery, id, error);
    return refused(parts, id, error, startMs);
  }
}

/** What a call is answered without being run. Never throws. */
export async function refuseCall(
  parts: CallParts,
  delivery: Delivery,
  error: InvocationError,
  signals: CallSignals,
): Promise<CallResult> {
  const startMs = parts.clock.monotonicMs();
  const id = await requestId(parts, delivery, signals);
  logRefusal(parts, delivery, id, error);
  return refused(parts, id, error, startMs);
}

/** The id of a request, as far as it has one. Never throws. */
export async function requestId(
  { largeRequests }: Pick<CallParts, "largeRequests">,
  { payload }: Pick<Delivery, "payload">,
  signals: CallSignals,
): Promise<string> {
  try {
    return readId(await readDocument(payload, largeRequests, signals.publish));
  } catch {
    return unknownId;
  }
}

function logRefusal(
  { log }: CallParts,
  { topic }: Delivery,
  id: string,
  error: InvocationError,
): void {
  logEvent(log, "call.refused", { ...failureFacts(error), id, topic });
}

function refused(
  { clock }: CallParts,
  id: string,
  error: InvocationError,
  startMs: number,
): CallResult {
  const executionTimeMs = clock.monotonicMs() - startMs;
  return resultOf(id, { kind: "error", error, executionTimeMs }, false);
}

/**
 * Whether the call of a tool that this worker does not serve is requeued: another worker may
 * serve it. That is so once, after which a tool of the manifest throws InvocationError:
 * `TOOL_NOT_AVAILABLE` with the reason, or `NOT_REPEATED`.
 */
function isLeftToOthers(
  parts: CallParts,
  delivery: Delivery,
  { claim, mayHaveStarted }: Claimed,
): boolean {
  const name = parseInvokeTopic(parts.namespace, delivery.topic);
  if (name === undefined || parts.resolve(name) !== undefined) return false;
  const { entry, publicReason } = parts.unavailable(name) ?? {};
  const leavesNoDoubt = claim.isCertain || entry?.idempotent === true;
  if (parts.session.redelivers && mayRequeue(delivery, leavesNoDoubt)) {
    logEvent(parts.log, "call.requeued_unserved", { tool: name });
    return true;
  }
  if (entry === undefined) return false;
  requireRepeatable(entry, mayHaveStarted);
  throw notAvailable(entry.name, publicReason);
}

/**
 * Callers may try again, with the same request, what has not started and may succeed later: that
 * has to be looked at.
 */
function resultOf(id: string, answer: Answer, started: boolean): CallResult {
  const mayTryAgain = !started && answer.kind === "error" && answer.error.retryable;
  return { response: { id, payload: encodeResponse(id, answer) }, isFinal: !mayTryAgain };
}

function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  return new InvocationError("INTERNAL_ERROR", "The worker could not handle the request", {
    cause: error,
  });
}

async function invoke(
  parts: CallParts,
  invocation: Invocation,
  claimed: Claimed,
  signals: CallSignals,
): Promise<{ readonly answer: Answer | undefined; readonly started: boolean }> {
  const log = parts.log.child({ taskId: invocation.taskId, tool: invocation.toolName });
  logEvent(log, "call.received");
  // A status that waits for the broker when the call is over must not follow its answer, or another
  // worker's.
  const over = new AbortController();
  const statusSignal = AbortSignal.any([signals.publish, over.signal]);
  const relay = new StatusRelay(
    (text) => publishStatus(parts, invocation, text, statusSignal, log),
    parts.clock,
  );
  const outcome = await parts.invoker.invoke(invocation, {
    signal: signals.run,
    waitSignal: signals.wait,
    log,
    onStatus: (text) => relay.push(text),
    claimed,
  });
  const statuses = await relay.finish();
  over.abort(callIsOver);
  const answer = answerOf(outcome, parts.session.redelivers, claimed.claim);
  const { started } = outcome;
  logEnding(log, answer ?? outcome, started, statuses);
  return { answer, started };
}

/**
 * What a call is answered, or undefined when it is requeued. A call that must not run twice is not
 * requeued after it started, nor when the next worker could not know that it did not.
 */
function answerOf(
  outcome: InvocationOutcome,
  redelivers: boolean,
  { isCertain }: Claimed["claim"],
): Answer | undefined {
  if (outcome.kind !== "cancelled") return outcome;
  if (outcome.reason === "elsewhere") return undefined;
  if (redelivers && (outcome.idempotent || (isCertain && !outcome.started))) return undefined;
  const { executionTimeMs } = outcome;
  return { kind: "error", error: stopped(outcome), executionTimeMs };
}

/**
 * Agents try `TOOL_NOT_AVAILABLE` again on their own, which must not happen to one that has
 * started.
 */
function stopped({ started, idempotent }: InvocationOutcome): InvocationError {
  if (!started) return new InvocationError("TOOL_NOT_AVAILABLE", "The worker is shutting down");
  const message = "The tool was stopped because the worker is shutting down";
  return new InvocationError(
    "SANDBOX_FAILED",
    idempotent ? message : `${message}. Its manifest entry forbids to run the call again`,
  );
}

async function publishStatus(
  { session, clock }: CallParts,
  { taskId, statusTo }: Invocation,
  text: string,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  // The pipe is read all the same: a tool never waits because nobody wants its statuses.
  if (statusTo === undefined) return;
  try {
    const payload = encodeStatus(taskId, text, clock.nowMs());
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
      logEvent(log, "call.failure_cause", { err: ending.error });
      break;
    case "cancelled":
      logEvent(log, "call.cancelled", { ...facts, reason: ending.reason, started });
      break;
  }
}

/**
 * What of a failure may stand in the log above debug: of the tool's own text nothing but the code.
 */
function failureFacts(error: InvocationError): {
  readonly code: string;
  readonly err?: InvocationError;
} {
  return error.isToolsText ? { code: error.code } : { code: error.code, err: error };
}
