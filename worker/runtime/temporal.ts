/**
 * An activity for Temporal workers of users, without a dependency on Temporal.
 */
import type { ToolGateway } from "../gateway/gateway.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { unsafeHost } from "./api/backend.ts";
import { RuntimeError } from "./api/errors.ts";
import type { ExecuteRequest } from "./api/request.ts";
import type { ExecuteResult } from "./api/result.ts";
import type { Runtime } from "./api/runtime.ts";

/** Milliseconds between heartbeats, if the heartbeat timeout has not less. */
export const heartbeatIntervalMs = 10_000;
/** Heartbeats within a heartbeat timeout: one may be late. */
const heartbeatsWithinTimeout = 3;

/** What is used of `Context` of `@temporalio/activity`. */
export interface ActivityContext {
  /** Without a heartbeat timeout, Temporal wants no heartbeats and tells of no cancellation. */
  readonly info: { readonly attempt: number; readonly heartbeatTimeoutMs?: number };
  /** Its reason is Temporal's `CancelledFailure`. */
  readonly cancellationSignal: AbortSignal;
  heartbeat(details?: unknown): void;
}

export interface ActivityOptions {
  /** The tools of all executions: a gateway cannot be in the arguments of an activity. */
  readonly gateway: ToolGateway;
  /** The context of the running activity: `() => Context.current()`. */
  readonly context: () => ActivityContext;
  readonly clock?: Clock;
}

/** What a workflow passes. */
export type ActivityRequest = Omit<ExecuteRequest, "gateway">;

/**
 * An activity that executes code. It throws ActivityError, or the signal's reason when it is
 * cancelled. `BACKEND_DENIED` where the runtime has no backend with isolation for the request.
 */
export function temporalActivity(
  runtime: Pick<Runtime, "backendFor" | "execute">,
  { gateway, context: current, clock = systemClock }: ActivityOptions,
): (request: ActivityRequest) => Promise<ExecuteResult> {
  return async (request) => {
    const context = current();
    const { cancellationSignal: signal } = context;
    const over = new AbortController();
    try {
      requireIsolation(runtime, request);
      // A heartbeat that cannot be sent is Temporal's affair.
      beat(context, clock, over.signal).catch(() => undefined);
      return await runtime.execute({ ...request, gateway }, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof RuntimeError ? new ActivityError(error) : error;
    } finally {
      over.abort(new Error("the activity is over"));
    }
  };
}

function requireIsolation(
  runtime: Pick<Runtime, "backendFor">,
  { profile }: ActivityRequest,
): void {
  const kind = kindFor(runtime, profile);
  if (kind !== undefined && kind !== unsafeHost) return;
  const detail =
    kind === undefined
      ? "an activity needs a backend with isolation, and its profile has none"
      : `an activity needs a backend with isolation, and ${kind} has none`;
  throw new RuntimeError("BACKEND_DENIED", { detail, op: "select", backend: kind });
}

function kindFor(
  runtime: Pick<Runtime, "backendFor">,
  profile: ActivityRequest["profile"],
): string | undefined {
  try {
    return runtime.backendFor(profile).kind;
  } catch {
    return undefined;
  }
}

async function beat(context: ActivityContext, clock: Clock, over: AbortSignal): Promise<void> {
  const { heartbeatTimeoutMs, attempt } = context.info;
  if (heartbeatTimeoutMs === undefined) return;
  const startMs = clock.monotonicMs();
  const pauseMs = Math.min(heartbeatIntervalMs, heartbeatTimeoutMs / heartbeatsWithinTimeout);
  while (!over.aborted) {
    context.heartbeat({ attempt, durationMs: clock.monotonicMs() - startMs });
    await clock.sleep(pauseMs, over).catch(() => undefined);
  }
}

const isTemporalFailure: unique symbol = Symbol.for("__temporal_isTemporalFailure");
const isApplicationFailure: unique symbol = Symbol.for("__temporal_isApplicationFailure");

/**
 * An error that Temporal takes for its `ApplicationFailure`, which it knows by these symbols. Its
 * `details` are what a RuntimeError has beside code and message.
 */
export class ActivityError extends Error {
  readonly [isTemporalFailure] = true;
  readonly [isApplicationFailure] = true;
  /** The code of the RuntimeError. */
  readonly type: string;
  readonly nonRetryable: boolean;
  readonly details: readonly unknown[];

  constructor({ message, code, op, backend, retryable, data, partial }: RuntimeError) {
    // Temporal would send a cause, too, which is for this side's log.
    super(message);
    this.name = "ApplicationFailure";
    this.type = code;
    this.nonRetryable = !retryable;
    this.details = [{ op, backend: backend ?? null, data: data ?? null, partial: partial ?? null }];
  }
}
