/**
 * Calls that a running tool makes: they pass the invoker as calls from the broker do.
 */
import { type DispatchResult, errorOfRun } from "../gateway/dispatch.ts";
import type { CallEnd } from "../invocation/audit/call-audit.ts";
import type { Claimed } from "../invocation/claims/claims.ts";
import type { Invoker } from "../invocation/call-context.ts";
import { sendingTimeMs } from "../invocation/limits.ts";
import type { GatewayCall } from "../invocation/steps/gateway.ts";
import type { CallSeries } from "../pool/call-series.ts";
import { InvocationError, failureFacts } from "../protocol/errors.ts";
import type { Invocation, InvocationOutcome } from "../protocol/invocation.ts";
import { traceIdOf } from "../protocol/trace-context.ts";
import type { Clock } from "../support/clock.ts";
import type { CallFollower, ReceivedCall } from "../telemetry/call-follower.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type InnerCall, cancelledCall, innerLog, timeOf, traceparentOf } from "./inner-call.ts";

/** Dependencies of {@link runInnerCall}. */
export interface InnerCallParts {
  readonly invoker: Invoker;
  /** Told of each call. */
  readonly series: Pick<CallSeries, "note">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Follows a call from now on. */
  readonly follow: (received: ReceivedCall) => CallFollower;
}

type Failed = Exclude<InvocationOutcome, { kind: "success" }>;

/** Runs a call by the name of its tool in the manifest. Throws GatewayError. */
export async function runInnerCall(
  parts: InnerCallParts,
  outer: GatewayCall,
  call: InnerCall,
  signal: AbortSignal,
): Promise<DispatchResult> {
  const { invoker, series, clock, follow } = parts;
  const { signal: shutdown, cancelSignal, onWaiting } = outer.context;
  const audit = outer.context.audit?.inner(call.callId, call.toolName);
  const invocation = innerInvocation(outer, call, clock.nowMs());
  const { traceparent } = invocation;
  const nested = { isNested: true, deliveryCount: 1, queue: undefined, correlationId: undefined };
  const follower = follow({ ...nested, traceparent });
  follower.resolved(call.toolName);
  const traceId = follower.trace?.traceId ?? (traceparent && traceIdOf(traceparent));
  const log = innerLog(parts.log, outer, call, traceId);
  logEvent(log, "tool_call.received");
  series.note();
  const startMs = clock.monotonicMs();
  let ending: CallEnd = "INTERNAL_ERROR";
  let cause: { readonly err?: unknown } = {};
  let backend: string | undefined;
  try {
    await audit?.start(invocation, shutdown);
    const outcome = await invoker.invoke(invocation, {
      signal: shutdown,
      // A worker that drains lets running calls make theirs.
      waitSignal: neverAborts,
      cancelSignal: AbortSignal.any([signal, ...(cancelSignal ? [cancelSignal] : [])]),
      isInner: true,
      log,
      onStatus: () => undefined,
      claimed: innerClaim(outer),
      audit,
      follower,
      onWaiting,
    });
    if (audit !== undefined) audit.started = outcome.started;
    backend = outcome.execution?.backend;
    if (outcome.kind !== "success") throw failureOf(outcome);
    ending = "ok";
    const { toolResult: structured, createdArtifacts: artifacts } = outcome;
    return { structured, artifacts, backend };
  } catch (error) {
    if (error instanceof InvocationError) ending = error.code;
    cause = causeOf(error);
    throw errorOfRun(error, backend);
  } finally {
    series.note();
    audit?.end(ending);
    follower.end({ outcome: ending, settlement: "none" });
    const durationMs = Math.round(clock.monotonicMs() - startMs);
    logEvent(log, "tool_call.ended", { outcome: ending, durationMs, ...cause });
  }
}

const neverAborts = new AbortController().signal;

/** The call in the name of the outer one's caller. */
function innerInvocation(
  outer: GatewayCall,
  { callId, toolId, toolName, args, depth }: InnerCall,
  nowMs: number,
): Invocation {
  const { invocation } = outer;
  const { endMs, leftMs } = timeOf(outer, nowMs);
  const traceparent = traceparentOf(outer);
  return Object.freeze<Invocation>({
    id: callId,
    taskId: invocation.taskId,
    toolName,
    args,
    toolConfig: invocation.gateway?.toolConfigs.get(toolId) ?? {},
    caller: invocation.caller,
    references: new Map(),
    preloaded: new Map(),
    timeoutSeconds: leftMs / 1000,
    requestedProfile: invocation.requestedProfile,
    gateway: invocation.gateway,
    depth,
    replyTo: invocation.replyTo,
    statusTo: undefined,
    sentAtMs: sendingTimeMs(endMs, leftMs),
    ...(traceparent !== undefined && { traceparent }),
    ...(invocation.tracestate !== undefined && { tracestate: invocation.tracestate }),
    ...(invocation.authToken !== undefined && { authToken: invocation.authToken }),
  });
}

/** A tool that must not run twice starts once for the outer call, wherever that runs. */
function innerClaim({ onBegin, context }: GatewayCall): Claimed {
  const begin = (idempotent: boolean): Promise<void> => onBegin({ idempotent });
  const keep = (): Promise<void> => onBegin({ idempotent: false });
  const mayHaveStarted = context.claimed?.mayHaveStarted ?? false;
  return { mayHaveStarted, claim: { isCertain: true, begin, keep } };
}

/** For the log, as far as the text is the worker's. */
function causeOf(error: unknown): { readonly err?: unknown } {
  if (!(error instanceof InvocationError)) return { err: error };
  const { err } = failureFacts(error);
  return err === undefined ? {} : { err };
}

function failureOf(outcome: Failed): InvocationError {
  switch (outcome.kind) {
    case "error":
      return outcome.error;
    case "timeout":
      return new InvocationError("SANDBOX_TIMEOUT", "The tool exceeded its time limit");
    case "cancelled":
      return cancelledCall();
  }
}
