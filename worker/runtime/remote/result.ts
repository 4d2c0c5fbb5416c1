/**
 * The answer of another worker as the result of a call, or as its error.
 */
import { type DispatchResult, opOf } from "../../gateway/dispatch.ts";
import { GatewayError } from "../../gateway/gateway.ts";
import { remoteBackend } from "../../gateway/remote.ts";
import { type ErrorCode, errorCodes } from "../../protocol/errors.ts";
import type { ReceivedAnswer } from "../../protocol/messages/answer.ts";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";

/** Characters of an error's message, as of those that workers write. */
const maxMessageLength = 4_000;
/** Characters of an error's data as JSON; larger data is left out. */
const maxDataLength = 16_384;

/** Throws GatewayError for all but a result. */
export function resultOf(answer: ReceivedAnswer): DispatchResult {
  switch (answer.kind) {
    case "success": {
      const { toolResult: structured, createdArtifacts: artifacts } = answer;
      return { structured, artifacts, backend: remoteBackend };
    }
    case "error":
      throw errorOf(answer);
    case "timed-out":
      throw new GatewayError("SANDBOX_TIMEOUT", "execute", shortened(answer.message));
    case "unusable": {
      const message = `The worker's answer cannot be used: ${shortened(answer.problem)}`;
      throw new GatewayError("EXECUTION_ERROR", "validate_output", message);
    }
  }
}

/** A code of another make stands in `data`. */
function errorOf({
  code,
  message,
  response,
}: Extract<ReceivedAnswer, { kind: "error" }>): GatewayError {
  const known = errorCodes.find((each) => each === code) ?? ("EXECUTION_ERROR" satisfies ErrorCode);
  const other = known === code ? {} : { code: code.slice(0, maxMessageLength) };
  const data = { ...dataOf(response["error"]), ...other };
  return new GatewayError(known, opOf(known), shortened(message), {
    data: Object.keys(data).length > 0 ? data : undefined,
  });
}

/** What the error says for programs, without the report on the sandbox. */
function dataOf(error: unknown): JsonObject {
  const data = isJsonObject(error) ? error["data"] : undefined;
  if (!isJsonObject(data)) return {};
  const { execution: _, ...rest } = data;
  return JSON.stringify(rest).length > maxDataLength ? {} : rest;
}

function shortened(text: string): string {
  return text.slice(0, maxMessageLength).toWellFormed();
}
