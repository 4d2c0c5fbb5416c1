/**
 * Answers requests for the description of a tool.
 */
import type { BrokerSession, BrokerSubscription, HeardMessage } from "../broker/broker.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import {
  type Generation,
  asksForAnswer,
  decodeDiscoveryRequest,
  encodeDescription,
  encodeDiscoveryError,
  maxDiscoveryRequestBytes,
} from "../protocol/discovery/messages.ts";
import { InvocationError, failureFacts } from "../protocol/errors.ts";
import { readReplyAddress } from "../protocol/messages/request.ts";
import { type DiscoveryKind, parseDiscoveryTopic } from "../protocol/topics.ts";
import { JsonError, parseJson } from "../support/json/json.ts";
import { Semaphore, SemaphoreFullError } from "../support/semaphore.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type DescribedTools, asInvocationError } from "./described-tools.ts";
import { isForAgents, published } from "./given.ts";

/** Requests of one generation that are answered at once; others wait as messages. */
const maxAnswering = 32;

/** Dependencies of {@link answerRequests}. */
export interface RequestParts {
  readonly session: Pick<BrokerSession, "publish">;
  readonly namespace: string;
  readonly tools: Pick<DescribedTools, "forRequest">;
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly log: Logger;
}

/** Answers the messages of a subscription until its end, or the signal. Never rejects. */
export async function answerRequests(
  parts: RequestParts,
  heard: BrokerSubscription,
  kind: DiscoveryKind,
  generation: Generation,
  signal: AbortSignal,
): Promise<void> {
  const slots = new Semaphore({ capacity: maxAnswering, maxWaiting: 1 });
  for await (const message of heard) {
    if (signal.aborted) return;
    const name = parseDiscoveryTopic(parts.namespace, kind, message.topic);
    // Tools of other groups are theirs to answer for.
    const tool = name === undefined ? undefined : parts.resolve(name);
    if (tool === undefined || !isForAgents(tool)) continue;
    const slot = await slots.acquire(signal).catch(() => undefined);
    void answer(parts, tool, generation, message, signal).finally(() => slot?.[Symbol.dispose]());
  }
}

async function answer(
  parts: RequestParts,
  tool: ToolEntry,
  generation: Generation,
  { payload, properties, topic: asked }: HeardMessage,
  signal: AbortSignal,
): Promise<void> {
  const { session, log } = parts;
  const document = read(payload);
  if (generation === "early" && !asksForAnswer(document)) return;
  const address = readReplyAddress(properties);
  if (address === undefined) return logEvent(log, "message.reply_to_missing", { topic: asked });
  const response = await respond(parts, tool, generation, document, signal);
  if (signal.aborted) return;
  const message = { topic: address.replyTo, payload: response };
  await session.publish(message, signal).catch((error: unknown) => {
    if (!signal.aborted) logEvent(log, "discovery.failed", { err: error });
  });
}

/** Undefined for what is no JSON. */
function read(payload: Uint8Array): unknown {
  if (payload.byteLength > maxDiscoveryRequestBytes) return undefined;
  try {
    return parseJson(payload);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

async function respond(
  { tools, log }: RequestParts,
  tool: ToolEntry,
  generation: Generation,
  document: unknown,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    const { id, toolConfig } = decodeDiscoveryRequest(document, generation);
    const description = await tools.forRequest(tool, toolConfig, signal);
    return encodeDescription(id, generation, tool.name, published(tool, description));
  } catch (error) {
    const refusal = error instanceof SemaphoreFullError ? busy(error) : asInvocationError(error);
    if (!signal.aborted)
      logEvent(log, "discovery.refused", { tool: tool.name, ...failureFacts(refusal) });
    return encodeDiscoveryError(document, refusal);
  }
}

function busy({ maxWaiting }: SemaphoreFullError): InvocationError {
  const message = `The worker is busy: ${maxWaiting} requests for descriptions wait already`;
  return new InvocationError("RESOURCE_EXHAUSTED", message);
}
