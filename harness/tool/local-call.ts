/**
 * One call of a local invoker, as an agent's.
 */
import { InvocationError } from "../../worker/protocol/errors.ts";
import type { Caller, Invocation } from "../../worker/protocol/invocation.ts";
import { decodeRequest } from "../../worker/protocol/messages/request.ts";
import { encodeResponse } from "../../worker/protocol/messages/response.ts";
import type { StatusListener } from "../../worker/protocol/messages/status-details.ts";
import { newUuid } from "../../worker/support/ids.ts";
import { JsonError, parseJson } from "../../worker/support/json/json.ts";
import { type Context, UsageError } from "../context.ts";
import {
  type Answer,
  RequestTooLargeError,
  type ToolCall,
  decodeAnswer,
  encodeRequest,
} from "../messages.ts";
import { defaultSessionId, defaultUserId } from "../options/defaults.ts";
import type { LocalInvoker } from "./local-invoker.ts";

/** Who calls. */
export const localCaller: Caller = {
  appName: "harness",
  userId: defaultUserId,
  sessionId: defaultSessionId,
};

/** What became of a call. */
export interface CallEnd {
  readonly answer: Answer;
  /** Of an error. */
  readonly cause: unknown;
  readonly executionTimeMs: number;
  /** What its sandbox did not have of what it should have. */
  readonly unenforced: readonly string[];
}

/**
 * Sends the call through the codecs of the wire: what a real agent could not send or read fails
 * here, too. Throws UsageError for what a worker refuses, and the signal's reason.
 */
export async function callHere(
  { invoker, log, describe }: LocalInvoker,
  toolCall: ToolCall,
  onStatus: StatusListener,
  context: Context,
): Promise<CallEnd> {
  // A second Ctrl-C ends this process, and with it the sandbox.
  const [never, cancelSignal] = [new AbortController().signal, context.signal];
  const invocation = toInvocation(toolCall, context);
  const signals = { signal: never, waitSignal: never, cancelSignal };
  // A worker has it before a call, so its time is none of the call's.
  await describe(toolCall.tool, cancelSignal);
  const outcome = await invoker.invoke(invocation, { ...signals, log, onStatus });
  // Only our own signal makes the invoker cancel a call.
  if (outcome.kind === "cancelled") throw cancelSignal.reason;
  return {
    answer: decodeAnswer(encodeResponse(invocation.id, outcome)),
    cause: outcome.kind === "error" ? outcome.error.cause : undefined,
    executionTimeMs: outcome.executionTimeMs,
    unenforced: outcome.execution?.unenforced ?? [],
  };
}

function toInvocation(toolCall: ToolCall, { clock }: Context): Invocation {
  const nowMs = clock.nowMs();
  const address = { replyTo: "none", statusTo: undefined, sentAtMs: nowMs };
  try {
    const request = encodeRequest(newUuid(), localCaller.appName, toolCall);
    return decodeRequest(parseJson(request), address, nowMs);
  } catch (error) {
    if (error instanceof RequestTooLargeError) {
      const advice = "Send large content with --artifact.";
      throw new UsageError(`${error.message}. ${advice}`, { cause: error });
    }
    if (error instanceof InvocationError || error instanceof JsonError) {
      throw new UsageError(`a worker refuses this call: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
