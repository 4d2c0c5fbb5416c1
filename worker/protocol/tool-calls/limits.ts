/**
 * Bounds of what one call may do by its gateway: how often, how deep, how much.
 */

/** Bounds; those of a request can only tighten those of the manifest. */
export interface GatewayLimits {
  /** Calls of tools, steps of chains included. */
  readonly maxToolCalls: number;
  /** Steps of one chain. */
  readonly maxChainSteps: number;
  /** Calls at once. */
  readonly maxConcurrentCalls: number;
  /** Calls in calls: 1 is a call by a tool that an agent called. */
  readonly maxDepth: number;
  /** Searches, descriptions, examples, lists of namespaces, and artifacts. */
  readonly maxLookups: number;
}

/** Unless the manifest says otherwise. */
export const defaultGatewayLimits: GatewayLimits = {
  maxToolCalls: 50,
  maxChainSteps: 20,
  maxConcurrentCalls: 8,
  maxDepth: 3,
  maxLookups: 200,
};

/** Most that a manifest may say. */
export const mostGatewayLimits: GatewayLimits = {
  maxToolCalls: 1_000,
  maxChainSteps: 100,
  maxConcurrentCalls: 8,
  maxDepth: 5,
  maxLookups: 1_000,
};

/** Names in manifests and requests. */
export const gatewayLimitKeys = {
  max_tool_calls: "maxToolCalls",
  max_chain_steps: "maxChainSteps",
  max_concurrent_calls: "maxConcurrentCalls",
  max_depth: "maxDepth",
  max_lookups: "maxLookups",
} as const satisfies Record<string, keyof GatewayLimits>;
