/**
 * The request for a tool of another worker: an agent's, in the name of the outer call's user.
 */
import type { OutboundMessage } from "../../broker/broker.ts";
import { GatewayError } from "../../gateway/gateway.ts";
import type { GatewayCall } from "../../invocation/steps/gateway.ts";
import type { Announcement } from "../../protocol/discovery/announcement.ts";
import type { ArtifactReference, GatewayRequest } from "../../protocol/invocation.ts";
import { agentPatienceSeconds, maxMessageBytes, maxTimeoutSeconds } from "../../protocol/limits.ts";
import { encodeCall } from "../../protocol/messages/call.ts";
import {
  authTokenProperty,
  callerProperty,
  depthProperty,
  maxArtifacts,
} from "../../protocol/messages/request.ts";
import { gatewayLimitKeys } from "../../protocol/tool-calls/limits.ts";
import { invokeTopic } from "../../protocol/topics.ts";
import { traceparentProperty, tracestateProperty } from "../../protocol/trace-context.ts";
import type { JsonObject } from "../../support/json/json.ts";
import { type InnerCall, traceparentOf } from "../inner-call.ts";
import type { ExpectedReply } from "./replies.ts";

/** What a request needs besides the call. */
export interface RequestFacts {
  readonly namespace: string;
  readonly reply: Pick<ExpectedReply, "id" | "replyTo">;
  /** The agent that this worker is to others. */
  readonly agent: string;
  readonly leftMs: number;
  readonly announcement: Announcement | undefined;
}

/** Throws GatewayError `RESOURCE_EXHAUSTED` for a request that is too large. */
export function requestOf(
  outer: GatewayCall,
  { toolId, toolName, args, depth }: InnerCall,
  { namespace, reply, agent, leftMs, announcement }: RequestFacts,
): OutboundMessage {
  const { caller, gateway, requestedProfile, authToken, tracestate } = outer.invocation;
  const traceparent = traceparentOf(outer);
  // Peers take whole seconds only.
  const timeoutSeconds = Math.min(Math.max(1, Math.floor(leftMs / 1000)), maxTimeoutSeconds);
  const payload = encodeCall({
    id: reply.id,
    ...{ toolName, args, caller, timeoutSeconds, requestedProfile },
    toolConfig: gateway?.toolConfigs.get(toolId) ?? {},
    references: referencesOf(args, announcement),
    preloaded: new Map(),
    gateway: gateway && narrowing(gateway),
  });
  requireSendable(payload);
  return {
    topic: invokeTopic(namespace, toolName),
    payload,
    properties: {
      replyTo: reply.replyTo,
      clientId: agent,
      userId: caller.userId,
      [depthProperty]: depth,
      [callerProperty]: "programmatic",
      ...(authToken !== undefined && { [authTokenProperty]: authToken }),
      ...(traceparent !== undefined && { [traceparentProperty]: traceparent }),
      ...(tracestate !== undefined && { [tracestateProperty]: tracestate }),
    },
    timeToLiveSeconds: timeoutSeconds + agentPatienceSeconds,
  };
}

function requireSendable({ byteLength }: Uint8Array): void {
  if (byteLength <= maxMessageBytes) return;
  const message = `The request has ${byteLength} bytes; at most ${maxMessageBytes} can be sent`;
  throw new GatewayError("RESOURCE_EXHAUSTED", "validate_input", message, { retryable: false });
}

/** Without the configurations, which are each for one tool. */
function narrowing({ tools, limits }: GatewayRequest): JsonObject {
  const bounds = Object.entries(gatewayLimitKeys).flatMap(([key, name]) => {
    const bound = limits[name];
    return bound === undefined ? [] : [[key, bound] as const];
  });
  return { ...(tools && { tools }), ...Object.fromEntries(bounds) };
}

/** Artifacts go by name: workers of other makes load only what is referred to. */
function referencesOf(
  args: JsonObject,
  announcement: Announcement | undefined,
): ReadonlyMap<string, ArtifactReference> {
  const references = new Map<string, ArtifactReference>();
  const refer = (key: string, filename: unknown): void => {
    if (typeof filename !== "string" || references.size >= maxArtifacts) return;
    references.set(key, { filename, version: undefined });
  };
  for (const name of announcement?.artifactParameters.keys() ?? []) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (!Array.isArray(value)) refer(name, value);
    else for (const [index, filename] of value.entries()) refer(`${name}[${index}]`, filename);
  }
  return references;
}
