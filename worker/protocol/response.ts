/**
 * The outcome of a call as the JSON-RPC answer that real agents accept.
 */
import type { Answer, CallAge } from "./invocation.ts";
import { InvocationError } from "./errors.ts";
import { type ExecutionReport, executionBody, limitBody } from "./execution.ts";
import { maxMessageBytes } from "./limits.ts";

/**
 * Encodes an answer as compact UTF-8 JSON of at most `maxBytes`; a larger one becomes a
 * `RESOURCE_EXHAUSTED` error that names both sizes. Null members are left out, numbers that agents
 * read as integers are whole, and `result` and `error` never stand together (design document §5;
 * agents' models reject anything else).
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

/**
 * Throws InvocationError `RESOURCE_EXHAUSTED` for an answer that `encodeResponse` would replace
 * because of its size.
 */
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
            // An undefined member is left out by JSON.stringify: agents refuse nothing, but expect
            // no nulls.
            description: artifact.description,
          })),
          ...facts,
        },
      };
    case "timeout":
      // Agents turn this shape into their own SANDBOX_TIMEOUT; the code is for readers that look
      // for one.
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

/** `data` is left out when there is nothing to say in it. */
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

function errorBody(
  { code, message, limit }: InvocationError,
  execution: ExecutionReport | undefined,
): object {
  const data = {
    ...(limit && limitBody(limit)),
    ...(execution && { execution: executionBody(execution) }),
  };
  return { code, message, ...(Object.keys(data).length > 0 && { data }) };
}
