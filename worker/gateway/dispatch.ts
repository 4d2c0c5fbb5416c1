/**
 * What a gateway hands to the parts that run calls, and how their errors are shown to programs.
 */
import { type ErrorCode, InvocationError } from "../protocol/errors.ts";
import { errorData } from "../protocol/messages/response.ts";
import type { JsonObject } from "../support/json/json.ts";
import type { CatalogEntry } from "./catalog.ts";
import { GatewayError, type RunResult, type ToolOp } from "./gateway.ts";
import { copyJson } from "./copies.ts";

/** A call that may run. */
export interface ToolCall {
  readonly callId: string;
  readonly tool: CatalogEntry;
  /** A copy that belongs to the receiver. */
  readonly args: JsonObject;
  /** 1 for a call of a program that an agent called. */
  readonly depth: number;
}

/** The result of a call. */
export interface DispatchResult extends RunResult {
  /** The kind of backend that ran it. */
  readonly backend?: string | undefined;
}

/**
 * Runs a call. Rejects with InvocationError or GatewayError. On abort it stops the call, and
 * settles once nothing of it runs.
 */
export type Dispatch = (call: ToolCall, signal: AbortSignal) => Promise<DispatchResult>;

/** The codes of failures before and after a tool runs. */
const opsByCode: Partial<Readonly<Record<ErrorCode, ToolOp>>> = {
  TOOL_NOT_AVAILABLE: "resolve",
  TOOL_NOT_FOUND: "resolve",
  INVALID_REQUEST: "validate_input",
};

/** The part of a call that fails by a code. */
export function opOf(code: ErrorCode): ToolOp {
  return opsByCode[code] ?? "execute";
}

/** An error as programs get it. The message of an unknown one is for the log only. */
export function gatewayErrorOf(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof InvocationError) {
    const { code, message, retryable, op = opOf(code) } = error;
    const data = errorData(error);
    return new GatewayError(code, op, message, {
      ...{ cause: error, retryable },
      data: data && copyJson(data as JsonObject).value,
    });
  }
  const message = "The worker failed to run the operation";
  return new GatewayError("INTERNAL_ERROR", "execute", message, { cause: error });
}

/** The same of a call that a backend of this kind ran. */
export function errorOfRun(error: unknown, backend: string | undefined): GatewayError {
  if (backend === undefined) return gatewayErrorOf(error);
  const { code, op, message, ...facts } = gatewayErrorOf(error);
  return new GatewayError(code, op, message, { ...facts, cause: error, backend });
}
