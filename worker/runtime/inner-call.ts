/**
 * A call that a running tool makes, of a tool of this worker or of another one.
 */
import type { ToolCall } from "../gateway/dispatch.ts";
import type { GatewayCall } from "../invocation/steps/gateway.ts";
import { InvocationError } from "../protocol/errors.ts";
import { CallLog } from "../telemetry/call-log.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Milliseconds of the outer call that are left for its own answer. */
const answerReserveMs = 1_000;

/** A call by the name under which the tool is served. */
export interface InnerCall extends Pick<ToolCall, "callId" | "args" | "depth"> {
  readonly toolId: string;
  readonly toolName: string;
}

/** When a call has to end, in epoch milliseconds, and how long it may take. */
export interface InnerTime {
  readonly endMs: number;
  readonly leftMs: number;
}

/** Throws InvocationError `CANCELLED` or `SANDBOX_TIMEOUT` when there is no time. */
export function timeOf({ deadlineMs, context }: GatewayCall, nowMs: number): InnerTime {
  if (context.cancelSignal?.aborted === true) throw cancelledCall();
  const endMs = deadlineMs - answerReserveMs;
  const leftMs = endMs - nowMs;
  if (leftMs > 0) return { endMs, leftMs };
  const message = "The call that calls the tool has no time left";
  throw new InvocationError("SANDBOX_TIMEOUT", message);
}

/** The trace context that an inner call gets. */
export function traceparentOf({ context, invocation }: GatewayCall): string | undefined {
  return context.follower?.trace?.traceparentOf("run") ?? invocation.traceparent;
}

/** The log of an inner call, which names its parent. */
export function innerLog(
  log: Logger,
  { invocation, tool }: GatewayCall,
  { callId: id, toolName, depth }: InnerCall,
  traceId: string | undefined,
): Logger {
  return new CallLog(log, {
    ...{ id, taskId: invocation.taskId, tool: toolName, depth },
    ...{ parentId: invocation.id, parent: tool.name },
    ...(traceId !== undefined && { traceId }),
  });
}

export function cancelledCall(): InvocationError {
  return new InvocationError("CANCELLED", "The call was cancelled");
}
