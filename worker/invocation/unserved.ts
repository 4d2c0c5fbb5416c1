/**
 * Calls for tools that this worker does not serve: requeued once, then refused.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";
import type { ToolEntry, UnavailableTool } from "../manifest/manifest.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Claimed } from "./claims/claims.ts";
import { requireRepeatable } from "./claims/redelivery.ts";
import { notAvailable } from "./steps/resolve.ts";

/**
 * Least delivery limit for a requeue: one delivery for the requeue, one for a run, one for a
 * second run, one before `POISONED`.
 */
const fewestDeliveries = 4;

/** The tools of the manifest in force. */
export interface ServingParts {
  readonly namespace: string;
  readonly session: Pick<BrokerSession, "redelivers">;
  /** A tool that is served. */
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  /** A tool of the manifest that is not served, with the reason. */
  readonly unavailable: (toolName: string) => UnavailableTool | undefined;
  readonly log: Logger;
}

/**
 * Whether the call is requeued for another worker that may serve its tool. Throws InvocationError
 * `TOOL_NOT_AVAILABLE` or `NOT_REPEATED` for a tool of the manifest after that one requeue.
 */
export function isRequeuedUnserved(
  { namespace, session, resolve, unavailable, log }: ServingParts,
  delivery: Delivery,
  { claim, mayHaveStarted }: Claimed,
): boolean {
  const tool = parseInvokeTopic(namespace, delivery.topic);
  if (tool === undefined || resolve(tool) !== undefined) return false;
  const { entry, publicReason } = unavailable(tool) ?? {};
  const isSafe = claim.isCertain || entry?.idempotent === true;
  if (session.redelivers && isSafe && mayRequeue(delivery)) {
    logEvent(log, "call.requeued_unserved", { tool });
    return true;
  }
  if (entry === undefined) return false;
  requireRepeatable(entry, mayHaveStarted);
  throw notAvailable(entry.name, publicReason);
}

/** A call is requeued once, and only below its delivery limit. */
function mayRequeue({ redelivered, deliveryCount, maxDeliveries }: Delivery): boolean {
  if (redelivered || deliveryCount > 1) return false;
  return maxDeliveries === undefined || maxDeliveries >= fewestDeliveries;
}
