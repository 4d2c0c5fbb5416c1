/**
 * Answers of a gateway to the requests of a sandbox.
 */
import { gatewayErrorOf } from "../dispatch.ts";
import { GatewayError, type ProgramGateway } from "../gateway.ts";
import { encodeFrame, maxAnswerBytes } from "./frames.ts";
import type { ProgramRequest } from "./messages.ts";

/** The line of a request's answer, a result or an error. Never rejects. */
export async function answerLine(
  gateway: ProgramGateway,
  request: ProgramRequest,
  signal: AbortSignal,
): Promise<Buffer> {
  const { id } = request;
  try {
    const payload = await payloadOf(gateway, request, signal);
    signal.throwIfAborted();
    const line = encodeFrame({ type: "response", id, payload });
    if (line.byteLength <= maxAnswerBytes) return line;
    throw tooLarge(line.byteLength);
  } catch (error) {
    return errorLine(id, gatewayErrorOf(signal.aborted ? signal.reason : error));
  }
}

async function payloadOf(
  gateway: ProgramGateway,
  request: ProgramRequest,
  signal: AbortSignal,
): Promise<object> {
  switch (request.type) {
    case "search_tools": {
      const { query, limit } = request.payload;
      return { results: await gateway.searchTools(query, limit, signal) };
    }
    case "list_namespaces":
      return { namespaces: await gateway.listNamespaces(signal) };
    case "describe_tool":
      return gateway.describeTool(request.payload.id, request.payload.level, signal);
    case "list_tool_examples": {
      const { id, max } = request.payload;
      return { examples: await gateway.listToolExamples(id, max, signal) };
    }
    case "run_tool":
      return gateway.runTool(request.payload.id, request.payload.args, signal);
    case "run_chain":
      return gateway.runChain(request.payload.steps, signal);
    case "load_artifact": {
      const { bytes, ...facts } = await gateway.loadArtifact(request.payload, signal);
      return { content: Buffer.from(bytes).toString("base64"), ...facts };
    }
  }
}

function errorLine(id: string, error: GatewayError): Buffer {
  const { message, code, retryable, op, data, stepResults } = error;
  const payload = { error: message, code, retryable, op, data, stepResults };
  const line = encodeFrame({ type: "error", id, payload });
  return line.byteLength <= maxAnswerBytes ? line : errorLine(id, tooLarge(line.byteLength));
}

function tooLarge(sizeBytes: number): GatewayError {
  const message = `The answer has ${sizeBytes} bytes; at most ${maxAnswerBytes} can be sent`;
  return new GatewayError("RESOURCE_EXHAUSTED", "validate_output", message, { retryable: false });
}
