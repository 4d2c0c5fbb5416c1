/**
 * One delivery: decoded, invoked, answered, settled.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Invocation, InvocationOutcome } from "../protocol/invocation.ts";
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
  readonly session: Pick<BrokerSession, "publish">;
  readonly invoker: Invoker;
  /** Turns for requests that are parsed by threads of their own, so that many of them do not become many threads. */
  readonly largeRequests: Slots;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The two ways a worker gives up: on running tools, and later on publishing answers. */
export interface HandlerSignals {
  /** Its reason, an InvocationError, answers the calls that are stopped. */
  readonly run: AbortSignal;
  readonly publish: AbortSignal;
}

/**
 * Handles one delivery to its settlement. Never throws: what cannot be answered is logged and settled.
 * Everything with a usable reply topic is answered exactly once per run of this function.
 */
export async function handleDelivery(
  parts: HandlerParts,
  delivery: Delivery,
  signals: HandlerSignals,
): Promise<void> {
  const address = readReplyAddress(delivery.properties);
  if (address === undefined) {
    parts.log.warn({ topic: delivery.topic }, "message without a usable replyTo was dropped");
    await settle(parts, delivery, "rejected");
    return;
  }
  const answer = await answerTo(parts, delivery, address, signals);
  try {
    await parts.session.publish({ topic: address.replyTo, payload: answer }, signals.publish);
    await settle(parts, delivery, "accepted");
  } catch (error) {
    parts.log.error({ err: error, topic: address.replyTo }, "answer could not be published");
    await settle(parts, delivery, "failed");
  }
}

/** The encoded answer; total. */
async function answerTo(
  parts: HandlerParts,
  delivery: Delivery,
  address: ReplyAddress,
  signals: HandlerSignals,
): Promise<Uint8Array> {
  const startMs = parts.clock.monotonicMs();
  let id = unknownId;
  try {
    const document = await readDocument(parts, delivery.payload, signals.publish);
    id = readId(document);
    const invocation = decodeRequest(document, address, parts.clock.nowMs());
    requireSameTool(parts.namespace, delivery.topic, invocation.toolName);
    return encodeResponse(id, await invoke(parts, invocation, signals));
  } catch (error) {
    const refusal =
      error instanceof InvocationError
        ? error
        : new InvocationError("INTERNAL_ERROR", "The worker could not handle the request", {
            cause: error,
          });
    parts.log.warn({ ...failureFacts(refusal), id, topic: delivery.topic }, "invocation refused");
    const executionTimeMs = parts.clock.monotonicMs() - startMs;
    return encodeResponse(id, { kind: "error", error: refusal, executionTimeMs });
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
): Promise<InvocationOutcome> {
  const log = parts.log.child({ taskId: invocation.taskId, tool: invocation.toolName });
  log.info("invocation received");
  const relay = new StatusRelay(
    (text) => publishStatus(parts, invocation, text, signals, log),
    parts.clock,
  );
  const outcome = await parts.invoker.invoke(invocation, {
    signal: signals.run,
    log,
    onStatus: (text) => relay.push(text),
  });
  const statuses = await relay.finish();
  logOutcome(log, outcome, statuses);
  return outcome;
}

async function publishStatus(
  { session, clock }: HandlerParts,
  { taskId, statusTo }: Invocation,
  text: string,
  signals: HandlerSignals,
  log: Logger,
): Promise<void> {
  // The pipe is read all the same: a tool never waits because nobody wants its statuses.
  if (statusTo === undefined) return;
  try {
    const payload = encodeStatus(taskId, text, clock.nowMs());
    await session.publish({ topic: statusTo, payload }, signals.publish);
  } catch (error) {
    log.debug({ err: error }, "status could not be published");
    throw error;
  }
}

function logOutcome(log: Logger, outcome: InvocationOutcome, statuses: object): void {
  const facts = { durationMs: outcome.executionTimeMs, statuses };
  switch (outcome.kind) {
    case "success":
      log.info({ ...facts, artifacts: outcome.createdArtifacts.length }, "invocation finished");
      break;
    case "timeout":
      log.warn({ ...facts, code: "SANDBOX_TIMEOUT" }, "invocation timed out");
      break;
    case "error":
      log.warn({ ...facts, ...failureFacts(outcome.error) }, "invocation failed");
      log.debug({ err: outcome.error }, "why the invocation failed");
      break;
  }
}

/** What of a failure may stand in the log above debug: of the tool's own text nothing but the code. */
function failureFacts(error: InvocationError): object {
  return error.isToolsText ? { code: error.code } : { code: error.code, err: error };
}

async function settle(
  parts: HandlerParts,
  delivery: Delivery,
  outcome: Parameters<Delivery["settle"]>[0],
): Promise<void> {
  try {
    await delivery.settle(outcome);
  } catch (error) {
    parts.log.warn({ err: error, topic: delivery.topic, outcome }, "delivery could not be settled");
  }
}
