/**
 * Has metrics, traces and console follow a delivery, and the log name its trace.
 */
import type { Delivery } from "../broker/broker.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import { readTraceparent, traceIdOf } from "../protocol/trace-context.ts";
import type { CallFollower, ReceivedCall } from "../telemetry/call-follower.ts";
import { CallLog } from "../telemetry/call-log.ts";
import type { Logger } from "../telemetry/logger.ts";
import { cancellableCall } from "./cancellation/callers.ts";

/** Dependencies of {@link follow}. */
export interface FollowParts {
  readonly namespace: string;
  /** A tool that is served. */
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  /** Follows a delivery from now on. */
  readonly follow: (received: ReceivedCall) => CallFollower;
}

/** Begins to follow a delivery; its tool counts if it is served. The caller ends it. */
export function follow(
  { follow: begin, namespace, resolve }: FollowParts,
  delivery: Delivery,
  replyTo: string | undefined,
): CallFollower {
  const { topic, queue, deliveryCount, properties } = delivery;
  const [correlationId] = replyTo ? cancellableCall(delivery, replyTo).correlationIds : [];
  const traceparent = readTraceparent(properties);
  const follower = begin({ queue, deliveryCount, correlationId, traceparent });
  const tool = parseInvokeTopic(namespace, topic);
  if (tool !== undefined && resolve(tool) !== undefined) follower.resolved(tool);
  return follower;
}

/**
 * The same parts, whose log lines name the trace of the call: the worker's, or without one the
 * caller's.
 */
export function withTrace<Parts extends { readonly log: Logger }>(
  parts: Parts,
  traceparent: string | undefined,
  { trace }: CallFollower,
): Parts {
  const traceId = trace?.traceId ?? (traceparent && traceIdOf(traceparent));
  return traceId === undefined ? parts : { ...parts, log: new CallLog(parts.log, { traceId }) };
}
