/**
 * Encodes the answer to a call as JSON-RPC that real agents accept.
 */
import type { Answer, CallAge } from "../invocation.ts";
import { InvocationError } from "../errors.ts";
import { type ExecutionReport, executionBody, limitBody } from "../execution.ts";
import { maxMessageBytes } from "../limits.ts";

/**
 * Compact UTF-8 JSON; beyond `maxBytes` a `RESOURCE_EXHAUSTED` error with both sizes. No nulls,
 * whole integers, `result` or `error`: agents' models reject anything else (design document §5).
 */
export function encodeResponse(
  id: string,
  answer: Answer,
  maxBytes: number = maxMessageBytes,
): Uint8Array {
  const bytes = encode(id, body(answer));
  const error = tooLarge(bytes, maxBytes);
  return error === undefined ? bytes : encode(id, { error: errorBody(error, answer.execution) });
}

/** Throws InvocationError `RESOURCE_EXHAUSTED` for an answer too large for `encodeResponse`. */
export function requireSendable(
  id: string,
  answer: Answer,
  maxBytes: number = maxMessageBytes,
): void {
  const error = tooLarge(encode(id, body(answer)), maxBytes);
  if (error !== undefined) throw error;
}

function encode(id: string, members: object): Uint8Array {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, ...members }));
}

function tooLarge({ byteLength }: Uint8Array, maxBytes: number): InvocationError | undefined {
  if (byteLength <= maxBytes) return undefined;
  return new InvocationError(
    "RESOURCE_EXHAUSTED",
    `The response has ${byteLength} bytes; at most ${maxBytes} can be sent. Return large data as an artifact.`,
  );
}

function body(answer: Answer): object {
  const { execution } = answer;
  const facts = execution && { execution: executionBody(execution) };
  switch (answer.kind) {
    case "success":
      return {
        result: {
          tool_result: answer.toolResult,
          execution_time_ms: Math.round(answer.executionTimeMs),
          timed_out: false,
          created_artifacts: answer.createdArtifacts.map((artifact) => ({
            filename: artifact.filename,
            version: artifact.version,
            mime_type: artifact.mimeType,
            size_bytes: artifact.sizeBytes,
            // JSON.stringify omits an undefined member; agents expect no nulls.
            description: artifact.description,
          })),
          ...facts,
        },
      };
    case "timeout":
      // Agents map this shape to their own SANDBOX_TIMEOUT; the code serves other readers.
      return {
        result: {
          tool_result: {},
          execution_time_ms: Math.round(answer.executionTimeMs),
          timed_out: true,
          created_artifacts: [],
          error_code: "SANDBOX_TIMEOUT",
          ...(answer.age && { data: ageBody(answer.age) }),
          ...facts,
        },
      };
    case "error":
      return { error: errorBody(answer.error, execution) };
  }
}

function ageBody({ ageMs, sentAtMs, receivedAtMs, clock }: CallAge): object {
  return {
    message:
      `The call was ${ageMs} ms old when the worker received it, too old to be answered in time. ` +
      `Its age is by the clocks of the ${clock} and the worker: compare them`,
    age_ms: ageMs,
    sent_at_ms: sentAtMs,
    received_at_ms: receivedAtMs,
    clock,
  };
}

function errorBody(error: InvocationError, execution: ExecutionReport | undefined): object {
  const data = {
    ...errorData(error),
    ...(execution && { execution: executionBody(execution) }),
  };
  const { code, message } = error;
  return { code, message, ...(Object.keys(data).length > 0 && { data }) };
}

/** What an error says for programs; undefined if it is nothing but code and message. */
export function errorData({
  limit,
  remainingArtifacts,
  reason,
  program,
}: InvocationError): object | undefined {
  const data = {
    ...(reason !== undefined && { reason }),
    ...(limit && limitBody(limit)),
    ...program,
    ...(remainingArtifacts.length > 0 && { remaining_artifacts: remainingArtifacts }),
  };
  return Object.keys(data).length > 0 ? data : undefined;
}
