/**
 * Answers requests of programs by the gateway of their execution.
 */
import { GatewayError, type ToolGateway, invalid } from "../../gateway/gateway.ts";
import { answerLine } from "../../gateway/proxy/answer.ts";
import { ChannelViolation, encodeFrame } from "../../gateway/proxy/frames.ts";
import { readProgramMessage } from "../../gateway/proxy/messages.ts";
import { JsonError, parseJson } from "../../support/json/json.ts";
import { maxMessageBytes, maxRequestBytes } from "./limits.ts";
import type { ThreadReport } from "./messages.ts";
import { withoutArtifacts } from "../without-artifacts.ts";

type Request = Extract<ThreadReport, { type: "request" }>;

/** The line of the answer. Never rejects. */
export async function answerTo(
  { id, request, payload }: Request,
  gateway: ToolGateway,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    if (payload === undefined)
      throw invalid(`The request has more than the ${maxRequestBytes} bytes that are accepted`);
    const frame = { type: request, id, payload: parseJson(Buffer.from(payload)) };
    const message = readProgramMessage(frame);
    if (message.type === "cancel") throw invalid("Calls cannot be cancelled");
    const line = await answerLine(withoutArtifacts(gateway), message, signal);
    if (line.byteLength <= maxMessageBytes) return line;
    const text = `The answer has ${line.byteLength} bytes; at most ${maxMessageBytes} can be sent`;
    throw new GatewayError("RESOURCE_EXHAUSTED", "validate_output", text, { retryable: false });
  } catch (error) {
    if (error instanceof GatewayError) return errorLine(id, error);
    // Texts of these two are public.
    const isTold = error instanceof JsonError || error instanceof ChannelViolation;
    return errorLine(id, invalid(isTold ? error.message : "The request cannot be read"));
  }
}

function errorLine(id: string, { code, op, message, retryable }: GatewayError): Uint8Array {
  return encodeFrame({ type: "error", id, payload: { error: message, code, op, retryable } });
}
