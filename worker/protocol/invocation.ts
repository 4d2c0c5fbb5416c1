/**
 * What a valid call is, and what becomes of it: the two types that every folder shares.
 */
import type { JsonObject } from "../support/json/json.ts";
import type { InvocationError } from "./errors.ts";
import type { ExecutionReport } from "./execution.ts";

/** An artifact in the shared store, as a request names it. */
export interface ArtifactReference {
  /** Artifact name; `user:NAME` addresses the user's artifacts across sessions. */
  readonly filename: string;
  /** Version number from 0, or undefined for the latest. */
  readonly version: number | undefined;
}

/** An artifact whose content came inside the request. */
export interface PreloadedArtifact {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

/** Who calls, as the request says it (design document, section 9.3: the worker trusts these). */
export interface Caller {
  /** The agent's name. */
  readonly appName: string;
  readonly userId: string;
  readonly sessionId: string;
}

/** One call of a tool: a frozen snapshot, built once at the edge and never changed. */
export interface Invocation {
  /** The JSON-RPC `id` of the request, echoed in the answer. */
  readonly id: string;
  /** The caller's task id. It is only ever echoed; nothing on this host is named by it. */
  readonly taskId: string;
  readonly toolName: string;
  readonly args: JsonObject;
  /** Tool configuration; may hold secrets and is never logged. */
  readonly toolConfig: JsonObject;
  readonly caller: Caller;
  /** By parameter name; list parameters use `param[0]`, `param[1]`. */
  readonly references: ReadonlyMap<string, ArtifactReference>;
  /** By parameter name; list parameters use `param[0]`, `param[1]`. */
  readonly preloaded: ReadonlyMap<string, PreloadedArtifact>;
  /** Seconds the caller grants the tool, or undefined when it did not say. */
  readonly timeoutSeconds: number | undefined;
  /** Name of the profile the caller asked for; it can only tighten. */
  readonly requestedProfile: string | undefined;
  /** Topic for the answer. */
  readonly replyTo: string;
  /** Topic for status notifications, or undefined when the caller wants none. */
  readonly statusTo: string | undefined;
  /**
   * Epoch milliseconds when the caller sent the request; when it was received, if it says nothing
   * or a later time.
   */
  readonly sentAtMs: number;
  /** Whose clock `sentAtMs` is of, where it is not the worker's. */
  readonly sentAtClock?: SendingClock;
}

/** Whose clock tells when a call was sent. */
export type SendingClock = "broker" | "sender";

/**
 * How old a call was when it came. Times are epoch milliseconds, the receipt by the worker's clock.
 */
export interface CallAge {
  readonly ageMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
  readonly clock: SendingClock;
}

/** An output artifact that is now in the store. */
export interface CreatedArtifact {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly description: string | undefined;
}

/** What a call is answered. */
export type Answer = AnswerFacts &
  (
    | {
        readonly kind: "success";
        readonly toolResult: JsonObject;
        readonly createdArtifacts: readonly CreatedArtifact[];
      }
    | {
        readonly kind: "timeout";
        /** Of a call that came too late to be run. */
        readonly age?: CallAge;
      }
    | { readonly kind: "error"; readonly error: InvocationError }
  );

interface AnswerFacts {
  /** Whole milliseconds since receipt. */
  readonly executionTimeMs: number;
  /** Undefined for a call that no sandbox ran for. */
  readonly execution?: ExecutionReport | undefined;
}

/**
 * Why a call was cancelled. `shutdown`: the worker stops. `elsewhere`: another worker has the call,
 * or gets it from the broker.
 */
export type CancelReason = "shutdown" | "elsewhere";

/**
 * A call that was not brought to its end. The handler decides whether and what it is answered. A
 * call that ran out of time is none: it has its answer.
 */
export interface Cancelled {
  readonly kind: "cancelled";
  readonly reason: CancelReason;
  readonly executionTimeMs: number;
}

/** How a call ended. */
export type InvocationOutcome = (Answer | Cancelled) & {
  /** Whether the tool's process may have run. */
  readonly started: boolean;
  /** Whether the manifest lets the call run once more after it has started, here or elsewhere. */
  readonly idempotent: boolean;
};
