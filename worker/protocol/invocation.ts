/**
 * A valid call, and its outcome: the two types that all folders share.
 */
import type { JsonObject } from "../support/json/json.ts";
import type { ArtifactVersion, InvocationError } from "./errors.ts";
import type { ExecutionReport } from "./execution.ts";
import type { GatewayLimits } from "./tool-calls/limits.ts";

/** An artifact in the shared store, as a request names it. */
export interface ArtifactReference {
  /** Artifact name; `user:NAME` addresses the user's artifacts across sessions. */
  readonly filename: string;
  /** Version number from 0, or undefined for the latest. */
  readonly version: number | undefined;
  /** Whether the call goes on without it if the store has none. Default: false. */
  readonly isOptional?: boolean;
}

/** An artifact with its content in the request. */
export interface PreloadedArtifact {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

/** The caller by the request, which the worker trusts (design document, section 9.3). */
export interface Caller {
  /** The agent's name. */
  readonly appName: string;
  readonly userId: string;
  readonly sessionId: string;
}

/** What a request says of the calls that its tool makes: it can only narrow the manifest. */
export interface GatewayRequest {
  /** Ids, or `NAMESPACE:*`; undefined for all that the manifest allows. */
  readonly tools?: readonly string[] | undefined;
  readonly limits: Partial<GatewayLimits>;
  /** `tool_config` of called tools, by id. May hold secrets; never logged. */
  readonly toolConfigs: ReadonlyMap<string, JsonObject>;
}

/** One call of a tool: an immutable snapshot. */
export interface Invocation {
  /** The JSON-RPC `id` of the request, echoed in the answer. */
  readonly id: string;
  /** The caller's task id, for echoing only: no name on this host contains it. */
  readonly taskId: string;
  readonly toolName: string;
  readonly args: JsonObject;
  /** May hold secrets; never logged. */
  readonly toolConfig: JsonObject;
  readonly caller: Caller;
  /** By parameter name; list parameters use `param[0]`, `param[1]`. */
  readonly references: ReadonlyMap<string, ArtifactReference>;
  /** By parameter name; list parameters use `param[0]`, `param[1]`. */
  readonly preloaded: ReadonlyMap<string, PreloadedArtifact>;
  /** Time limit by the caller, in seconds. */
  readonly timeoutSeconds: number | undefined;
  /** Profile by the caller, which can only tighten. */
  readonly requestedProfile: string | undefined;
  /** Undefined where the request says nothing of it. */
  readonly gateway?: GatewayRequest | undefined;
  /** Calls that this one is nested in: 0 for an agent's. Undefined counts as 0. */
  readonly depth?: number;
  /** Whether a tool of another worker makes the call, which has to allow that besides. */
  readonly isByTool?: boolean;
  /** Token of the caller's user, for calls to other workers. A secret; never logged. */
  readonly authToken?: string;
  /** Topic for the answer. */
  readonly replyTo: string;
  /** Topic for statuses; undefined without interest in them. */
  readonly statusTo: string | undefined;
  /** Sending time in epoch milliseconds; the receipt where that is unknown or earlier. */
  readonly sentAtMs: number;
  /** Clock of `sentAtMs`, unless it is the worker's. */
  readonly sentAtClock?: SendingClock;
  /** W3C trace context of the call. */
  readonly traceparent?: string;
  /** What vendors of tracing add to it, as the caller sent it. */
  readonly tracestate?: string;
}

/** Clock of the sending time. */
export type SendingClock = "broker" | "sender";

/** Age of a call at its receipt by the worker's clock. Times are epoch milliseconds. */
export interface CallAge {
  readonly ageMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
  readonly clock: SendingClock;
}

/** A saved output artifact. */
export interface CreatedArtifact {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly description: string | undefined;
}

/** The answer to a call. */
export type Answer = AnswerFacts &
  (
    | {
        readonly kind: "success";
        readonly toolResult: JsonObject;
        readonly createdArtifacts: readonly CreatedArtifact[];
      }
    | {
        readonly kind: "timeout";
        /** Only for a call that was too old to run. */
        readonly age?: CallAge;
      }
    | { readonly kind: "error"; readonly error: InvocationError }
  );

interface AnswerFacts {
  /** Whole milliseconds since receipt. */
  readonly executionTimeMs: number;
  /** Undefined for a call without a sandbox. */
  readonly execution?: ExecutionReport | undefined;
}

/**
 * `caller`: its caller cancelled the call. `operator`: a user of the console did. `elsewhere`:
 * another worker has the call, or receives it from the broker.
 */
export type CancelReason = Canceller | "shutdown" | "elsewhere";

/** Who can cancel a call, which is answered `CANCELLED` then. */
export type Canceller = "caller" | "operator";

/** A call that was stopped. It is answered or requeued, by the reason. A timeout is an answer. */
export interface Cancelled {
  readonly kind: "cancelled";
  readonly reason: CancelReason;
  /** Outputs of the call that the store still has. */
  readonly remainingArtifacts?: readonly ArtifactVersion[];
  readonly executionTimeMs: number;
  /** Undefined for a call without a sandbox. */
  readonly execution?: ExecutionReport | undefined;
}

/** The end of a call. */
export type InvocationOutcome = (Answer | Cancelled) & {
  /** Whether the tool's process may have run. */
  readonly started: boolean;
  /** Whether the manifest allows a second run after the first has started, on any worker. */
  readonly idempotent: boolean;
};
