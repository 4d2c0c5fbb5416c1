/**
 * The agent's side of the wire: encodes requests, decodes answers.
 */
import type { ArtifactReference, PreloadedArtifact } from "../worker/protocol/invocation.ts";
import { maxMessageBytes } from "../worker/protocol/limits.ts";
import { type ReceivedAnswer, readAnswer } from "../worker/protocol/messages/answer.ts";
import { encodeCall } from "../worker/protocol/messages/call.ts";
import { invokeMethod } from "../worker/protocol/messages/request.ts";
import {
  type StatusDetails,
  readStatusDetails,
} from "../worker/protocol/messages/status-details.ts";
import { responseTopic, statusTopic } from "../worker/protocol/topics.ts";
import {
  JsonError,
  type JsonLimits,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../worker/support/json/json.ts";
import {
  defaultProfile,
  defaultSessionId,
  defaultTimeoutSeconds,
  defaultUserId,
} from "./options/defaults.ts";

/** Bounds of an answer: a message of 10 MB may have many small values. */
const answerLimits: JsonLimits = { depth: 200, values: 5_000_000 };

/** A decoded answer. */
export type { ReceivedAnswer as Answer } from "../worker/protocol/messages/answer.ts";

/** A call of a tool, as an agent makes it. */
export interface ToolCall {
  readonly tool: string;
  readonly args?: JsonObject;
  /** May hold secrets. */
  readonly toolConfig?: JsonObject;
  readonly userId?: string;
  readonly sessionId?: string;
  /** Artifacts in the store, by parameter name; list parameters use `param[0]`, `param[1]`. */
  readonly references?: ReadonlyMap<string, ArtifactReference>;
  /** Artifacts with their content, by parameter name. */
  readonly preloaded?: ReadonlyMap<string, PreloadedArtifact>;
  /** Time limit; `defaultTimeoutSeconds` by default. */
  readonly timeoutSeconds?: number;
  /** `defaultProfile` by default. */
  readonly profile?: string;
  /** W3C trace context, which goes beside the request as a user property. */
  readonly traceparent?: string;
  /** Narrows what the tool may call: `params.gateway`. May hold secrets. */
  readonly gateway?: JsonObject;
}

/** Pattern of all answers and statuses of an agent; only one subscription keeps their order. */
export function inboxPattern(namespace: string, agent: string): string {
  const statuses = statusTopic(namespace, agent, ">").split("/");
  const answers = responseTopic(namespace, agent, ">").split("/");
  return answers.map((level, index) => (level === statuses[index] ? level : "*")).join("/");
}

/** A request above the agents' size limit. */
export class RequestTooLargeError extends Error {
  readonly sizeBytes: number;

  constructor(sizeBytes: number) {
    super(`the request has ${sizeBytes} bytes; at most ${maxMessageBytes} can be sent`);
    this.name = "RequestTooLargeError";
    this.sizeBytes = sizeBytes;
  }
}

/** Encodes an invoke request as agents do. Throws RequestTooLargeError. */
export function encodeRequest(id: string, appName: string, call: ToolCall): Uint8Array {
  const { userId = defaultUserId, sessionId = defaultSessionId } = call;
  const bytes = encodeCall({
    id,
    toolName: call.tool,
    args: call.args ?? {},
    toolConfig: call.toolConfig ?? {},
    caller: { appName, userId, sessionId },
    references: call.references ?? new Map(),
    preloaded: call.preloaded ?? new Map(),
    timeoutSeconds: call.timeoutSeconds ?? defaultTimeoutSeconds,
    requestedProfile: call.profile ?? defaultProfile,
    gateway: call.gateway,
  });
  if (bytes.byteLength > maxMessageBytes) throw new RequestTooLargeError(bytes.byteLength);
  return bytes;
}

/** Encodes a request that no worker can run, so that each answer shows a worker of the tool. */
export function encodeProbe(id: string): Uint8Array {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, method: invokeMethod, params: {} }));
}

/** Decodes an answer. Never throws. */
export function decodeAnswer(payload: Uint8Array): ReceivedAnswer {
  const response = decodeObject(payload);
  return typeof response === "string"
    ? { kind: "unusable", problem: response, response: undefined }
    : readAnswer(response);
}

/** A status of a call. */
export interface Status {
  readonly text: string;
  readonly details: StatusDetails | undefined;
}

/** Decodes a status, with its text in either of two fields; undefined without one. */
export function decodeStatus(payload: Uint8Array): Status | undefined {
  const notification = decodeObject(payload);
  if (typeof notification === "string") return undefined;
  const members = isJsonObject(notification["params"]) ? notification["params"] : notification;
  const text = members["status_text"];
  return typeof text === "string" ? { text, details: readStatusDetails(members) } : undefined;
}

/** The object, or why there is none. */
function decodeObject(payload: Uint8Array): JsonObject | string {
  try {
    const document = parseJson(payload, answerLimits);
    return isJsonObject(document) ? document : "it is not a JSON object";
  } catch (error) {
    if (error instanceof JsonError) return `it is ${error.message}`;
    throw error;
  }
}
