/**
 * The limits of a gateway, and their names in errors.
 */
import { type GatewayLimits, mostGatewayLimits } from "../protocol/tool-calls/limits.ts";
import { GatewayError } from "./gateway.ts";

/** The limits as a request asks for them: never more than they are. */
export function narrowLimits(
  limits: GatewayLimits,
  requested: Partial<GatewayLimits>,
): GatewayLimits {
  const least = (name: keyof GatewayLimits) => Math.min(limits[name], requested[name] ?? Infinity);
  return {
    maxToolCalls: least("maxToolCalls"),
    maxChainSteps: least("maxChainSteps"),
    maxConcurrentCalls: least("maxConcurrentCalls"),
    maxDepth: least("maxDepth"),
    maxLookups: least("maxLookups"),
    maxOperationsPerSecond: least("maxOperationsPerSecond"),
    maxArtifactBytes: least("maxArtifactBytes"),
  };
}

/** Greatest `maxDepth`, whatever is configured. */
export const greatestDepth = mostGatewayLimits.maxDepth;

/** Refusals that end a program. */
export const maxRefusals = 100;

/** A limit in `data.limit` of an error. */
export type GatewayLimitWord =
  | "max_tool_calls"
  | "max_chain_steps"
  | "max_depth"
  | "max_lookups"
  | "max_operations_per_second"
  | "max_artifact_bytes"
  | "tool_calls";

/** The error of a limit. */
export function limitReached(
  limit: GatewayLimitWord,
  bound: number,
  message: string,
  retryable = false,
): GatewayError {
  const data = { limit, bound };
  return new GatewayError("LIMIT_REACHED", "resolve", message, { data, retryable });
}
