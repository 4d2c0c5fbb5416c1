/**
 * Outcomes of calls as the library tells them.
 */
import type { ErrorCode, InvocationError } from "../../protocol/errors.ts";
import { errorData } from "../../protocol/messages/response.ts";
import type { InvocationOutcome } from "../../protocol/invocation.ts";
import { RuntimeError, type RuntimeErrorCode } from "../../runtime/api/errors.ts";
import type { Executed } from "../../runtime/api/backend.ts";
import { SemaphoreFullError } from "../../support/semaphore.ts";
import type { Json, JsonObject } from "../../support/json/json.ts";

/** Codes that are not the code's own failure. */
const codes: Partial<Readonly<Record<ErrorCode, RuntimeErrorCode>>> = {
  SANDBOX_TIMEOUT: "TIMEOUT",
  TOOL_NOT_AVAILABLE: "RUNTIME_UNAVAILABLE",
  INTERNAL_ERROR: "RUNTIME_UNAVAILABLE",
  RESOURCE_EXHAUSTED: "RESOURCE_LIMIT",
};

/** What programs come to; the invoker has checked it. */
interface ProgramResult {
  readonly value: Json;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the code came to. Throws RuntimeError. */
export function executedOf(outcome: InvocationOutcome): Executed {
  const { execution } = outcome;
  const partial = {
    stdout: execution?.output?.stdout.text ?? "",
    stderr: execution?.output?.stderr.text ?? "",
  };
  if (outcome.kind === "success") {
    const { value, stdout, stderr } = outcome.toolResult as unknown as ProgramResult;
    const start = execution?.start;
    return {
      ...{ value, stdout, stderr },
      ...(start !== undefined && { details: { start } }),
    };
  }
  if (outcome.kind === "cancelled" && outcome.reason === "shutdown") throw closed();
  // At the end of its time or of its signal, which the caller knows.
  if (outcome.kind !== "error") throw new RuntimeError("TIMEOUT", { partial });
  const { error } = outcome;
  throw new RuntimeError(codeOf(error), {
    ...{ detail: error.message, cause: error, partial },
    data: errorData(error) as JsonObject | undefined,
  });
}

/** The error of an execution whose backend is disposed. */
export function closed(): RuntimeError {
  const detail = "the backend is closed";
  return new RuntimeError("RUNTIME_UNAVAILABLE", { detail, retryable: false });
}

function codeOf({ code, limit, cause }: InvocationError): RuntimeErrorCode {
  if (limit !== undefined) return "RESOURCE_LIMIT";
  if (cause instanceof SemaphoreFullError) return "RUNTIME_UNAVAILABLE";
  // Without a cause it is the code's: it ended without a result, or with a wrong one.
  if (code === "INTERNAL_ERROR" && cause === undefined) return "EXECUTION_FAILED";
  // A sandbox that did not start has the reason as its cause.
  if (code === "SANDBOX_FAILED" && cause !== undefined) return "RUNTIME_UNAVAILABLE";
  return codes[code] ?? "EXECUTION_FAILED";
}
