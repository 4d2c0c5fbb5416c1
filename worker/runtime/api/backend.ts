/**
 * What executes code: the contract of backends, and what all of them have in common.
 */
import type { ToolGateway } from "../../gateway/gateway.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import type { Json, JsonObject } from "../../support/json/json.ts";
import { CountedGateway } from "./counted-gateway.ts";
import { RuntimeError } from "./errors.ts";
import {
  type BoundLimits,
  type Enforcer,
  type Evidence,
  type LimitKind,
  limitKinds,
  limitOfKind,
} from "./limits.ts";
import { type ExecuteRequest, type RuntimeProfile, checkRequest } from "./request.ts";
import type { ExecuteResult, Readiness } from "./result.ts";

/** Milliseconds of an execution whose request names no time, where the backend has no other. */
export const defaultTimeoutMs = 30_000;

/** Kinds that have a meaning of their own; a user's backend has any other name. */
export const unsafeHost = "unsafe_host";

/** Options of an execution. */
export interface ExecuteOptions {
  readonly signal?: AbortSignal;
}

/**
 * Executes code, many at once. Requests are read-only, results belong to the caller. Its owner
 * disposes it after the last execution.
 */
export interface RuntimeBackend extends AsyncDisposable {
  readonly kind: string;
  readonly languages: readonly string[];
  readonly readiness: Readiness;
  /** Requests for others are refused. */
  readonly profiles: readonly RuntimeProfile[];
  /** The limits that it was seen to keep. */
  readonly evidence: Evidence;
  /** Rejects with the signal's reason on abort, else with RuntimeError. */
  execute(request: ExecuteRequest, options?: ExecuteOptions): Promise<ExecuteResult>;
}

/** A checked execution. */
export interface Execution {
  readonly code: string;
  readonly language: string;
  readonly profile: RuntimeProfile | undefined;
  /** The time after which the signal aborts. */
  readonly timeoutMs: number;
  readonly limits: BoundLimits;
  /** Those that {@link defineBackend} has found in the evidence. */
  readonly requireEnforced: readonly LimitKind[];
  /** Counts and bounds the calls. */
  readonly gateway: ToolGateway;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What the code came to. */
export interface Executed {
  readonly value: Json;
  readonly stdout: string;
  readonly stderr: string;
  /** Facts of this execution, beside those of the backend. */
  readonly details?: JsonObject;
  /** Limits that are kept for executions like this one; those of the backend by default. */
  readonly evidence?: Evidence;
}

/** A backend without what is the same for all. */
export interface BackendDefinition {
  readonly kind: string;
  /** The first is the one for requests that name none. */
  readonly languages: readonly [string, ...string[]];
  readonly readiness: Readiness;
  readonly details: JsonObject;
  /** Those that it keeps: `dev` and `standard` by default. */
  readonly profiles?: readonly RuntimeProfile[];
  /**
   * Limits of memory, processor time, processes and disk that a program was stopped at when the
   * backend was opened on this host. Time and calls are kept by {@link defineBackend}.
   */
  readonly evidence: Evidence;
  readonly defaultTimeoutMs?: number;
  /** Bytes of code; more are refused before anything starts. */
  readonly maxCodeBytes?: number;
  /**
   * Runs the code. On abort, it ends everything that it has started and settles then, if only by a
   * RuntimeError whose `partial` is what was printed. Other errors are the backend's own failures.
   */
  run(execution: Execution, signal: AbortSignal): Promise<Executed>;
  close?(): Promise<void>;
}

/** Kept by what follows, for every backend. */
const common = { timeout: "guard", toolCalls: "engine", chainSteps: "engine" } as const;

/** `hardened` is no more than a word where nothing is done for it. */
const defaultProfiles: readonly RuntimeProfile[] = ["dev", "standard"];

/** A backend that checks requests, keeps time and calls, and tells which limits were kept. */
export function defineBackend(
  definition: BackendDefinition,
  clock: Clock = systemClock,
): RuntimeBackend {
  const { kind, languages, readiness, profiles = defaultProfiles } = definition;
  const kept: Evidence = Object.freeze({ ...definition.evidence, ...common });
  return {
    ...{ kind, languages, readiness, profiles, evidence: kept },
    execute: (request, { signal = neverAborts } = {}) =>
      execute({ ...definition, profiles }, kept, clock, request, signal),
    [Symbol.asyncDispose]: async () => definition.close?.(),
  };
}

const neverAborts = new AbortController().signal;

async function execute(
  definition: BackendDefinition & Pick<RuntimeBackend, "profiles">,
  kept: Evidence,
  clock: Clock,
  request: ExecuteRequest,
  signal: AbortSignal,
): Promise<ExecuteResult> {
  const { kind, readiness } = definition;
  const limits = checkRequest(request, signal);
  requireProfile(definition, request);
  const language = languageOf(definition, request);
  requireSize(definition, request);
  requireKept(kind, kept, limits, request);
  const timeoutMs = request.timeoutMs || (definition.defaultTimeoutMs ?? defaultTimeoutMs);
  const over = AbortSignal.timeout(Math.ceil(timeoutMs));
  const unwanted = AbortSignal.any([signal, over]);
  const gateway = new CountedGateway(request.gateway, limits, clock, unwanted);
  const ending = AbortSignal.any([unwanted, gateway.ended]);
  const startMs = clock.monotonicMs();
  const { code, profile, metadata = {}, requireEnforced = [] } = request;
  const bounds = { timeoutMs, limits, requireEnforced };
  const execution = { code, language, profile, ...bounds, gateway, metadata };
  const facts = () => ({ toolCalls: gateway.records, durationMs: clock.monotonicMs() - startMs });
  try {
    const { value, stdout, stderr, details, evidence } = await definition.run(execution, ending);
    ending.throwIfAborted();
    return {
      ...{ value: structuredClone(value), stdout, stderr, ...facts() },
      backend: {
        ...{ kind, readiness },
        details: structuredClone({ ...definition.details, ...details }),
      },
      ...enforced(evidence === undefined ? kept : { ...evidence, ...common }, limits),
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const printed = error instanceof RuntimeError ? error.partial : undefined;
    const partial = { stdout: "", stderr: "", ...printed, ...facts() };
    const options = { backend: kind, cause: error, partial };
    if (over.aborted) throw new RuntimeError("TIMEOUT", options);
    if (gateway.ended.aborted) {
      const data = { limit: "tool_calls" };
      throw new RuntimeError("RESOURCE_LIMIT", { ...options, detail: "tool calls", data });
    }
    if (!(error instanceof RuntimeError))
      throw new RuntimeError("RUNTIME_UNAVAILABLE", { ...options, detail: "the backend failed" });
    const { code: failed, op, detail, retryable, data } = error;
    throw new RuntimeError(failed, {
      ...{ op, detail, retryable, data, backend: kind, cause: error.cause, partial },
    });
  }
}

/** Throws RuntimeError `RESOURCE_LIMIT` for too much code. */
function requireSize(
  { kind, maxCodeBytes = Infinity }: BackendDefinition,
  { code }: ExecuteRequest,
): void {
  const codeBytes = Buffer.byteLength(code);
  if (codeBytes <= maxCodeBytes) return;
  const detail = `the code has ${codeBytes} bytes, more than ${maxCodeBytes}`;
  const data = { limit: "code", bound: maxCodeBytes };
  throw new RuntimeError("RESOURCE_LIMIT", { detail, data, op: "validate", backend: kind });
}

/** Throws RuntimeError `RUNTIME_UNAVAILABLE`, as the following do. */
function requireProfile(
  { kind, profiles }: Pick<RuntimeBackend, "kind" | "profiles">,
  { profile }: ExecuteRequest,
): void {
  if (profile === undefined || profiles.includes(profile)) return;
  const detail = `the backend ${kind} does not keep the profile ${String(profile).slice(0, 40)}`;
  throw new RuntimeError("RUNTIME_UNAVAILABLE", {
    ...{ detail, backend: kind, op: "select", retryable: false },
  });
}

function languageOf({ kind, languages }: BackendDefinition, { language }: ExecuteRequest): string {
  if (language === undefined || language === "") return languages[0];
  if (languages.includes(language)) return language;
  const detail = `the backend ${kind} runs ${languages.join(", ")}, not ${language.slice(0, 40)}`;
  throw new RuntimeError("RUNTIME_UNAVAILABLE", {
    ...{ detail, backend: kind, op: "select", retryable: false },
  });
}

/** Throws RuntimeError `RUNTIME_UNAVAILABLE` before anything starts. */
function requireKept(
  kind: string,
  kept: Evidence,
  limits: BoundLimits,
  { requireEnforced = [] }: ExecuteRequest,
): void {
  const { limitsEnforced } = enforced(kept, limits);
  const missing = requireEnforced.filter((limit) => !limitsEnforced[limit]);
  if (missing.length === 0) return;
  const detail = `the backend ${kind} was not seen to keep, or the request does not set: ${missing.join(", ")}`;
  throw new RuntimeError("RUNTIME_UNAVAILABLE", {
    ...{ detail, backend: kind, op: "select", retryable: false },
  });
}

/** Which limits were set and are kept; there always is a time. */
function enforced(
  kept: Evidence,
  limits: BoundLimits,
): Pick<ExecuteResult, "limitsEnforced" | "limitsEnforcedBy"> {
  const by: Partial<Record<LimitKind, Enforcer>> = {};
  for (const kind of limitKinds) {
    const isSet = kind === "timeout" || limits[limitOfKind[kind]] !== Infinity;
    const enforcer = kept[kind];
    if (isSet && enforcer !== undefined) by[kind] = enforcer;
  }
  const flags = limitKinds.map((kind) => [kind, by[kind] !== undefined] as const);
  return {
    limitsEnforced: Object.fromEntries(flags) as ExecuteResult["limitsEnforced"],
    limitsEnforcedBy: by,
  };
}
