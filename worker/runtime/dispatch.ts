/**
 * Dispatches the calls of a running tool: to the invoker, or to other workers. While they run, the
 * tool lends its slot.
 */
import type { Dispatch, DispatchResult } from "../gateway/dispatch.ts";
import type { GatewayCall } from "../invocation/steps/gateway.ts";
import type { CallableSnapshot } from "./callable-tools.ts";
import { type InnerCallParts, runInnerCall } from "./run-inner-call.ts";
import type { InnerCall } from "./inner-call.ts";

/** Dependencies of {@link dispatchOf}. */
export interface DispatchParts extends InnerCallParts {
  readonly remote: RemoteCalls;
}

/** Calls tools of other workers. */
export interface RemoteCalls {
  /** Throws GatewayError. */
  call(outer: GatewayCall, call: InnerCall, signal: AbortSignal): Promise<DispatchResult>;
}

/** @param over aborts with the gateway: then the slot is not waited for any more */
export function dispatchOf(
  parts: DispatchParts,
  outer: GatewayCall,
  { names, remote }: Pick<CallableSnapshot, "names" | "remote">,
  over: AbortSignal,
): Dispatch {
  return async ({ callId, tool: { id: toolId }, args, depth }, signal) => {
    const call = { callId, toolId, toolName: names.get(toolId) ?? toolId, args, depth };
    outer.slot.begin();
    try {
      return remote.has(toolId)
        ? await parts.remote.call(outer, call, signal)
        : await runInnerCall(parts, outer, call, signal);
    } finally {
      // Also after a call that the tool has cancelled: it goes on.
      await outer.slot.end(over);
    }
  };
}
