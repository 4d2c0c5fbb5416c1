/**
 * The limits of a gateway, and their names in errors.
 */
import { GatewayError } from "./gateway.ts";

/** Limits of one program. */
export interface GatewayLimits {
  /** Calls, those of chains and refused ones included. */
  readonly maxToolCalls: number;
  readonly maxChainSteps: number;
  /** Calls at a time; others wait. A chain is one. */
  readonly maxConcurrentCalls: number;
  /** Calls of calls: 1 lets a program call tools, and no tool of those call others. */
  readonly maxDepth: number;
  /** Searches, lists and documents. */
  readonly maxLookups: number;
  /** Operations of all kinds; others wait, at most a second. */
  readonly maxOperationsPerSecond: number;
  /** Bytes of artifacts that are loaded. */
  readonly maxArtifactBytes: number;
}

export const defaultGatewayLimits: GatewayLimits = {
  maxToolCalls: 50,
  maxChainSteps: 20,
  maxConcurrentCalls: 8,
  maxDepth: 3,
  maxLookups: 200,
  maxOperationsPerSecond: 100,
  maxArtifactBytes: 64 * 1024 * 1024,
};

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
export const greatestDepth = 5;

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
