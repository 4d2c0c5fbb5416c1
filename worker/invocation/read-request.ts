/**
 * The request of a delivery, read: large ones by threads, and none for another tool than its topic names.
 */
import { InvocationError } from "../protocol/errors.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import { decodeJson, offThreadAboveBytes } from "../support/json-decoder.ts";
import { JsonError } from "../support/json.ts";
import type { Slots } from "../support/slots.ts";

/**
 * The request as a document. Throws InvocationError `RESOURCE_EXHAUSTED` for one that is too large, `INVALID_REQUEST` for
 * what is no JSON; rejects with the signal's reason.
 *
 * @param largeRequests turns for requests that are parsed by threads of their own
 */
export async function readDocument(
  payload: Uint8Array,
  largeRequests: Slots,
  signal: AbortSignal,
): Promise<unknown> {
  if (payload.byteLength > maxMessageBytes) {
    throw new InvocationError(
      "RESOURCE_EXHAUSTED",
      `The request has ${payload.byteLength} bytes; at most ${maxMessageBytes} are accepted`,
    );
  }
  using _turn =
    payload.byteLength > offThreadAboveBytes ? await largeRequests.acquire(signal) : undefined;
  try {
    return await decodeJson(payload, signal);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvocationError("INVALID_REQUEST", `Invalid request: ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * A broker grants access by topic, so a request must not reach another tool than its topic names. Throws InvocationError
 * `INVALID_REQUEST`.
 */
export function requireSameTool(namespace: string, topic: string, toolName: string): void {
  if (parseInvokeTopic(namespace, topic) === toolName) return;
  throw new InvocationError(
    "INVALID_REQUEST",
    "Invalid request: params.tool_name: does not match the topic it was sent to",
  );
}
