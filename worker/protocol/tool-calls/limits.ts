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
  /** Operations of all kinds; others wait, at most a second. */
  readonly maxOperationsPerSecond: number;
  /** Bytes of artifacts that are loaded. */
  readonly maxArtifactBytes: number;
}

const MiB = 1024 * 1024;

/** Unless the manifest says otherwise. */
export const defaultGatewayLimits: GatewayLimits = {
  maxToolCalls: 50,
  maxChainSteps: 20,
  maxConcurrentCalls: 8,
  maxDepth: 3,
  maxLookups: 200,
  maxOperationsPerSecond: 100,
  maxArtifactBytes: 64 * MiB,
};

/** Most that a manifest may say. */
export const mostGatewayLimits: GatewayLimits = {
  maxToolCalls: 1_000,
  maxChainSteps: 100,
  maxConcurrentCalls: 8,
  maxDepth: 5,
  maxLookups: 1_000,
  maxOperationsPerSecond: 1_000,
  maxArtifactBytes: 1_024 * MiB,
};

/** Names in manifests and requests. */
export const gatewayLimitKeys = {
  max_tool_calls: "maxToolCalls",
  max_chain_steps: "maxChainSteps",
  max_concurrent_calls: "maxConcurrentCalls",
  max_depth: "maxDepth",
  max_lookups: "maxLookups",
  max_operations_per_second: "maxOperationsPerSecond",
  max_artifact_bytes: "maxArtifactBytes",
} as const satisfies Record<string, keyof GatewayLimits>;
