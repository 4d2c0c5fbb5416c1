/**
 * One delivery: decoded, invoked, answered or given back, settled.
 */
import type { BrokerSession, Delivery, Settlement } from "../broker/broker.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Answer, GivenUp, Invocation, InvocationOutcome } from "../protocol/invocation.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import {
  type ReplyAddress,
  decodeRequest,
  readId,
  readReplyAddress,
  unknownId,
} from "../protocol/request.ts";
import { encodeResponse } from "../protocol/response.ts";
import { encodeStatus } from "../protocol/status.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import type { Clock } from "../support/clock.ts";
import { decodeJson, offThreadAboveBytes } from "../support/json-decoder.ts";
import { JsonError } from "../support/json.ts";
import type { Slots } from "../support/slots.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Invoker } from "./invoker.ts";
import { StatusRelay } from "./status-relay.ts";

/** What the handler works with. */
export interface HandlerParts {
  readonly namespace: string;
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly invoker: Invoker;
  /** Turns for requests that are parsed by threads of their own, so that many of them do not become many threads. */
  readonly largeRequests: Slots;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The three things that a worker gives up when it stops, one after the other. */
export interface HandlerSignals {
  /** Calls that have no slot yet. */
  readonly wait: AbortSignal;
  /** Every call. */
  readonly run: AbortSignal;
  /** Publishing answers. */
  readonly publish: AbortSignal;
}

/** Made once: an error costs more than all else that is done to end the statuses of a call. */
const callIsOver = new Error("the call is over");

/** What goes out for a request. */
interface Reply {
  readonly payload: Uint8Array;
  /** Whether the call may run once more if this cannot be published. */
  readonly mayRunAgain: boolean;
}

/**
 * Handles one delivery to its settlement, which it tells. Never throws: what cannot be answered is logged and settled.
 * Everything with a usable reply topic is answered exactly once per run of this function, but for calls that the worker
 * gives up: those go back to a broker that redelivers, unanswered, unless they must not run again.
 */
export async function handleDelivery(
  parts: HandlerParts,
  delivery: Delivery,
  signals: HandlerSignals,
): Promise<Settlement> {
  const address = readReplyAddress(delivery.properties);
  if (address === undefined) {
    parts.log.warn({ topic: delivery.topic }, "message without a usable replyTo was dropped");
    return settle(parts, delivery, "rejected");
  }
  const reply = await replyTo(parts, delivery, address, signals);
  if (reply === undefined) return settle(parts, delivery, "failed");
  try {
    const { payload } = reply;
    await parts.session.publish({ topic: address.replyTo, payload }, signals.publish);
  } catch (error) {
    parts.log.error({ err: error, topic: address.replyTo }, "answer could not be published");
    return settle(parts, delivery, reply.mayRunAgain ? "failed" : "rejected");
  }
  return settle(parts, delivery, "accepted");
}

/** What goes out, or undefined for a call that is given back. Never throws. */
async function replyTo(
  parts: HandlerParts,
  delivery: Delivery,
  address: ReplyAddress,
  signals: HandlerSignals,
): Promise<Reply | undefined> {
  const startMs = parts.clock.monotonicMs();
  let id = unknownId;
  try {
    const document = await readDocument(parts, delivery.payload, signals.publish);
    id = readId(document);
    const invocation = decodeRequest(document, address, parts.clock.nowMs());
    requireSameTool(parts.namespace, delivery.topic, invocation.toolName);
    const { answer, mayRunAgain } = await invoke(parts, invocation, signals);
    return answer && { payload: encodeResponse(id, answer), mayRunAgain };
  } catch (error) {
    const refusal =
      error instanceof InvocationError
        ? error
        : new InvocationError("INTERNAL_ERROR", "The worker could not handle the request", {
            cause: error,
          });
    parts.log.warn({ ...failureFacts(refusal), id, topic: delivery.topic }, "invocation refused");
    const executionTimeMs = parts.clock.monotonicMs() - startMs;
    const payload = encodeResponse(id, { kind: "error", error: refusal, executionTimeMs });
    return { payload, mayRunAgain: true };
  }
}

async function readDocument(
  { largeRequests }: HandlerParts,
  payload: Uint8Array,
  signal: AbortSignal,
): Promise<unknown> {
  if (payload.byteLength > maxMessageBytes) {
    throw new InvocationError(
      "RESOURCE_EXHAUSTED",
      `The request has ${payload.byteLength} bytes; at most ${maxMessageBytes} are accepted`,
    );
  }
  using _turn =
    payload.byteLength > offThreadAboveBytes ? await largeRequests.acquire(signal) : undefined;
  try {
    return await decodeJson(payload, signal);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvocationError("INVALID_REQUEST", `Invalid request: ${error.message}`, {
      cause: error,
    });
  }
}

/** A broker grants access by topic, so a request must not reach another tool than its topic names. */
function requireSameTool(namespace: string, topic: string, toolName: string): void {
  if (parseInvokeTopic(namespace, topic) === toolName) return;
  throw new InvocationError(
    "INVALID_REQUEST",
    "Invalid request: params.tool_name: does not match the topic it was sent to",
  );
}

async function invoke(
  parts: HandlerParts,
  invocation: Invocation,
  signals: HandlerSignals,
): Promise<{ readonly answer: Answer | undefined; readonly mayRunAgain: boolean }> {
  const log = parts.log.child({ taskId: invocation.taskId, tool: invocation.toolName });
  log.info("invocation received");
  // A status that waits for the broker when the call is over must not follow its answer, or another worker's.
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
  });
  const statuses = await relay.finish();
  over.abort(callIsOver);
  const answer = answerOf(outcome, parts.session.redelivers);
  logEnding(log, answer ?? outcome, statuses);
  return { answer, mayRunAgain: outcome.mayRunAgain };
}

/** What a call is answered, or undefined when it is given back: the broker hands it to another worker, or here again. */
function answerOf(outcome: InvocationOutcome, redelivers: boolean): Answer | undefined {
  if (outcome.kind !== "given-up") return outcome;
  if (redelivers && outcome.mayRunAgain) return undefined;
  const { executionTimeMs } = outcome;
  return { kind: "error", error: stopped(outcome), executionTimeMs };
}

/** Agents try `TOOL_NOT_AVAILABLE` again on their own, which a tool that has begun must not be. */
function stopped({ begun, mayRunAgain }: GivenUp & InvocationOutcome): InvocationError {
  if (!begun) return new InvocationError("TOOL_NOT_AVAILABLE", "The worker is shutting down");
  const message = "The tool was stopped because the worker is shutting down";
  return new InvocationError(
    "SANDBOX_FAILED",
    mayRunAgain ? message : `${message}. Its manifest entry forbids to run the call again`,
  );
}

async function publishStatus(
  { session, clock }: HandlerParts,
  { taskId, statusTo }: Invocation,
  text: string,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  // The pipe is read all the same: a tool never waits because nobody wants its statuses.
  if (statusTo === undefined) return;
  try {
    const payload = encodeStatus(taskId, text, clock.nowMs());
    await session.publish({ topic: statusTo, payload }, signal);
  } catch (error) {
    log.debug({ err: error }, "status could not be published");
    throw error;
  }
}

function logEnding(log: Logger, ending: Answer | GivenUp, statuses: object): void {
  const facts = { durationMs: ending.executionTimeMs, statuses };
  switch (ending.kind) {
    case "success":
      log.info({ ...facts, artifacts: ending.createdArtifacts.length }, "invocation finished");
      break;
    case "timeout":
      log.warn({ ...facts, code: "SANDBOX_TIMEOUT" }, "invocation timed out");
      break;
    case "error":
      log.warn({ ...facts, ...failureFacts(ending.error) }, "invocation failed");
      log.debug({ err: ending.error }, "why the invocation failed");
      break;
    case "given-up":
      log.info({ ...facts, begun: ending.begun }, "invocation given back");
      break;
  }
}

/** What of a failure may stand in the log above debug: of the tool's own text nothing but the code. */
function failureFacts(error: InvocationError): object {
  return error.isToolsText ? { code: error.code } : { code: error.code, err: error };
}

/** Tells the broker, and the caller, how a delivery ended. Never throws. */
async function settle(
  parts: HandlerParts,
  delivery: Delivery,
  outcome: Settlement,
): Promise<Settlement> {
  try {
    await delivery.settle(outcome);
  } catch (error) {
    parts.log.warn({ err: error, topic: delivery.topic, outcome }, "delivery could not be settled");
  }
  return outcome;
}
