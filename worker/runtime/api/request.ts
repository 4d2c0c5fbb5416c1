/**
 * What `Runtime.execute` is asked for.
 */
import type { ToolGateway } from "../../gateway/gateway.ts";
import { RuntimeError } from "./errors.ts";
import {
  type BoundLimits,
  type LimitKind,
  type RuntimeLimits,
  boundLimits,
  limitKinds,
} from "./limits.ts";

/**
 * Security of an execution. These are not the profiles of a worker's manifest, where `standard`
 * may use the network.
 */
export const runtimeProfiles = ["dev", "standard", "hardened"] as const;
export type RuntimeProfile = (typeof runtimeProfiles)[number];

/** Greatest time of an execution: that of timers. */
export const maxTimeoutMs = 2 ** 31 - 1;

/** An execution. Nothing of it is changed. */
export interface ExecuteRequest {
  readonly code: string;
  /** `python`, `typescript` or `javascript`; the backend's own by default. */
  readonly language?: string;
  /** 0, and none, is the backend's own limit. */
  readonly timeoutMs?: number;
  readonly limits?: RuntimeLimits;
  /** The runtime's `defaultProfile` by default. */
  readonly profile?: RuntimeProfile;
  /** What the code calls tools by. */
  readonly gateway: ToolGateway;
  /** For the log and for backends; not for the code. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Limits without which nothing starts: set, and seen to be kept. */
  readonly requireEnforced?: readonly LimitKind[];
}

/**
 * Checks a request in the documented order: aborted, gateway, code, limits. Throws the signal's
 * reason, or RuntimeError.
 */
export function checkRequest(request: ExecuteRequest, signal: AbortSignal): BoundLimits {
  signal.throwIfAborted();
  // Callers may have no type check.
  const given = Object(request) as Readonly<Partial<Record<keyof ExecuteRequest, unknown>>>;
  const { gateway, code, timeoutMs = 0, language = "", limits = {}, requireEnforced = [] } = given;
  if (typeof gateway !== "object" || gateway === null)
    throw new RuntimeError("MISSING_GATEWAY", { op: "validate" });
  if (typeof code !== "string" || code === "")
    throw new RuntimeError("MISSING_CODE", { op: "validate" });
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0 && timeoutMs <= maxTimeoutMs))
    throw invalid(`Timeout must be milliseconds from 0 to ${maxTimeoutMs}`);
  if (typeof limits !== "object" || limits === null) throw invalid("Limits must be an object");
  const bounds = boundLimits(limits);
  if (typeof language !== "string") throw invalid("Language must be text");
  if (!Array.isArray(requireEnforced) || !requireEnforced.every(isLimitKind))
    throw invalid(`RequireEnforced has names of ${limitKinds.join(", ")}`);
  return bounds;
}

function isLimitKind(name: unknown): boolean {
  return limitKinds.some((kind) => kind === name);
}

function invalid(detail: string): RuntimeError {
  return new RuntimeError("INVALID_LIMITS", { detail, op: "validate" });
}
