/**
 * The agent's side of the wire: encodes requests, decodes answers.
 */
import { z } from "zod";
import type {
  ArtifactReference,
  CreatedArtifact,
  PreloadedArtifact,
} from "../worker/protocol/invocation.ts";
import { maxMessageBytes } from "../worker/protocol/limits.ts";
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

/**
 * Encodes an invoke request as compact UTF-8 JSON (design document, section 5). The id is also the
 * task id, as agents have it. Throws RequestTooLargeError.
 */
export function encodeRequest(id: string, appName: string, call: ToolCall): Uint8Array {
  const request = {
    jsonrpc: "2.0",
    id,
    method: invokeMethod,
    params: {
      task_id: id,
      tool_name: call.tool,
      args: call.args ?? {},
      tool_config: call.toolConfig ?? {},
      app_name: appName,
      user_id: call.userId ?? defaultUserId,
      session_id: call.sessionId ?? defaultSessionId,
      preloaded_artifacts: members(call.preloaded, (artifact) => ({
        filename: artifact.filename,
        content: Buffer.from(artifact.bytes).toString("base64"),
        mime_type: artifact.mimeType,
        version: artifact.version,
        metadata: {},
      })),
      // A version that is undefined is left out, which means the latest.
      artifact_references: members(call.references, ({ filename, version }) => ({
        filename,
        version,
      })),
      timeout_seconds: call.timeoutSeconds ?? defaultTimeoutSeconds,
      sandbox_profile: call.profile ?? defaultProfile,
      ...(call.gateway && { gateway: call.gateway }),
    },
  };
  const bytes = Buffer.from(JSON.stringify(request));
  if (bytes.byteLength > maxMessageBytes) throw new RequestTooLargeError(bytes.byteLength);
  return bytes;
}

/** Encodes a request that no worker can run, so that each answer shows a worker of the tool. */
export function encodeProbe(id: string): Uint8Array {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, method: invokeMethod, params: {} }));
}

function members<T>(
  map: ReadonlyMap<string, T> | undefined,
  encode: (value: T) => object,
): Record<string, object> {
  const entries = [...(map ?? [])].map(([name, value]) => [name, encode(value)] as const);
  return Object.fromEntries(entries);
}

/** A decoded answer. `response` is the whole message. */
export type Answer =
  | {
      readonly kind: "success";
      readonly toolResult: JsonObject;
      readonly createdArtifacts: readonly CreatedArtifact[];
      readonly executionTimeMs: number;
      readonly response: JsonObject;
    }
  | {
      readonly kind: "error";
      readonly code: string;
      readonly message: string;
      readonly response: JsonObject;
    }
  /** The worker stopped the tool. */
  | {
      readonly kind: "timed-out";
      /** The worker's message for people. */
      readonly message: string;
      readonly executionTimeMs: number;
      readonly response: JsonObject;
    }
  /** Agents refuse an answer like this one. */
  | {
      readonly kind: "unusable";
      readonly problem: string;
      /** Undefined when the answer is no JSON object. */
      readonly response: JsonObject | undefined;
    };

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });

const createdArtifact = z
  .object({
    filename: z.string(),
    version: z.int().min(0),
    mime_type: z.string(),
    size_bytes: z.int().min(0),
    description: z.string().nullish(),
  })
  .transform((artifact): CreatedArtifact => ({
    filename: artifact.filename,
    version: artifact.version,
    mimeType: artifact.mime_type,
    sizeBytes: artifact.size_bytes,
    description: artifact.description ?? undefined,
  }));

/** As strict as agents are: the id is text, the error code is text, the execution time is whole. */
const answerSchema = z.object({
  id: z.string(),
  result: z
    .object({
      tool_result: jsonObject,
      execution_time_ms: z.int(),
      timed_out: z.boolean().default(false),
      created_artifacts: z.array(createdArtifact).default([]),
      data: z.object({ message: z.string() }).optional().catch(undefined),
    })
    .nullish(),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
});

/** Decodes an answer. Never throws. */
export function decodeAnswer(payload: Uint8Array): Answer {
  const response = decodeObject(payload);
  if (typeof response === "string") {
    return { kind: "unusable", problem: response, response: undefined };
  }
  const parsed = answerSchema.safeParse(response);
  if (!parsed.success) return { kind: "unusable", problem: describe(parsed.error), response };
  const { result, error } = parsed.data;
  if (error) return { kind: "error", code: error.code, message: error.message, response };
  if (!result) {
    return { kind: "unusable", problem: "it has neither a result nor an error", response };
  }
  const executionTimeMs = result.execution_time_ms;
  if (result.timed_out) {
    const stopped = `The worker stopped the tool after ${executionTimeMs} ms`;
    const message = result.data?.message ?? stopped;
    return { kind: "timed-out", message, executionTimeMs, response };
  }
  return {
    kind: "success",
    toolResult: result.tool_result,
    createdArtifacts: result.created_artifacts,
    executionTimeMs,
    response,
  };
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

function describe(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined ? "it is no answer" : `${issue.path.join(".")}: ${issue.message}`;
}
