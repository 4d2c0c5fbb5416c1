/**
 * Failures of an execution as they go over a connection.
 */
import { RuntimeError } from "../api/errors.ts";
import type { ErrorMessage } from "./messages.ts";

/** Others than RuntimeErrors show nothing of the far side. */
export function errorMessage(error: unknown): ErrorMessage {
  if (!(error instanceof RuntimeError)) {
    const { code, op, retryable } = new RuntimeError("RUNTIME_UNAVAILABLE");
    return { type: "error", code, op, retryable, detail: "the far side failed" };
  }
  const { code, op, retryable, detail, data, partial } = error;
  return {
    ...{ type: "error", code, op, retryable },
    ...(detail !== undefined && { detail }),
    ...(data !== undefined && { data }),
    ...(partial !== undefined && {
      partial: { stdout: partial.stdout ?? "", stderr: partial.stderr ?? "" },
    }),
  };
}

/** The far side's error, here. */
export function errorOf({ code, ...options }: ErrorMessage): RuntimeError {
  return new RuntimeError(code, options);
}
