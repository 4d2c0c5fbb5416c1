/**
 * What `Runtime.execute` returns.
 */
import type { Json, JsonObject } from "../../support/json/json.ts";
import type { Enforcer, LimitKind } from "./limits.ts";
import type { ToolCallRecord } from "./tool-calls.ts";

/** How much a backend is to be relied on. */
export const readinesses = ["production", "beta", "prototype", "stub"] as const;
export type Readiness = (typeof readinesses)[number];

/** The backend of an execution. */
export interface BackendInfo {
  readonly kind: string;
  /** Facts for operators, such as versions. */
  readonly details: JsonObject;
  readonly readiness: Readiness;
}

/** What came of an execution; a copy that belongs to the caller. */
export interface ExecuteResult {
  /** `__out` of the code, or its last expression; null without one. */
  readonly value: Json;
  /** The first 64 KiB. */
  readonly stdout: string;
  readonly stderr: string;
  readonly toolCalls: readonly ToolCallRecord[];
  readonly durationMs: number;
  readonly backend: BackendInfo;
  /** True where the limit was set and the backend has been seen to keep it on this host. */
  readonly limitsEnforced: Readonly<Record<LimitKind, boolean>>;
  /** By whom, for each that is true. */
  readonly limitsEnforcedBy: Readonly<Partial<Record<LimitKind, Enforcer>>>;
}
