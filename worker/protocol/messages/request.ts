/**
 * Decodes a message from the broker to an Invocation, or to a refusal.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { InvocationError } from "../errors.ts";
import type {
  ArtifactReference,
  Invocation,
  PreloadedArtifact,
  SendingClock,
} from "../invocation.ts";
import { maxTimeoutSeconds } from "../limits.ts";
import { isPublishableTopic } from "../topics.ts";
import { readTraceparent, readTracestate } from "../trace-context.ts";
import { gatewayRequest } from "./gateway-request.ts";

/** The method of an invoke request (design document, section 5). */
export const invokeMethod = "sam_remote_tool/invoke";

/** Longest id or name in a request, in characters. */
export const maxNameLength = 1_000;
/** Largest number of artifacts one request may bring or name. */
export const maxArtifacts = 1_000;
/**
 * Longest name of a field in an error, in characters; a parameter's name is the caller's and of any
 * length.
 */
const maxFieldLength = 200;
/** Epoch milliseconds (2000-01-01) of the earliest valid time: some senders count in seconds. */
export const earliestSentAtMs = 946_684_800_000;
/** The `id` in the answer to a request without a usable id; agents match answers by topic. */
export const unknownId = "unknown";

/** User property of a message that its sender sends again, for lack of a confirmation. */
export const resentProperty = "resent";

/** User property of a call by a tool that was called itself: how deep it is nested. */
export const depthProperty = "callDepth";

/** User property of a call by a tool: `programmatic`. */
export const callerProperty = "callerKind";

/** Deeper calls are refused anyhow. */
const maxReadDepth = 100;

/** User property with the token of the call's user. */
export const authTokenProperty = "authToken";

/** Characters of the longest token that is passed on. */
const maxAuthTokenLength = 16_384;

/** Destination of answers and what else the user properties of a message say. */
export interface ReplyAddress {
  readonly replyTo: string;
  readonly statusTo: string | undefined;
  /** Sending time in epoch milliseconds, if known. */
  readonly sentAtMs: number | undefined;
  /** Clock of `sentAtMs`; the sender's unless given. */
  readonly sentAtClock?: SendingClock;
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  /** Calls that the call is nested in, as its caller says; undefined where it does not. */
  readonly depth?: number | undefined;
  /** Whether a tool makes the call, as its worker says. */
  readonly isByTool?: boolean | undefined;
  /** A secret. */
  readonly authToken?: string | undefined;
}

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });
const name = z.string().min(1).max(maxNameLength);

/** Bounded entries; in a Map keys such as `__proto__` are harmless. */
function entries<T extends z.ZodType>(schema: T) {
  return jsonObject
    .refine((object) => Object.keys(object).length <= maxArtifacts, {
      error: `expected at most ${maxArtifacts} entries`,
    })
    .transform((object) => new Map<string, unknown>(Object.entries(object)))
    .pipe(z.map(name, schema));
}

const reference = z
  .object({ filename: name, version: z.int().min(0).nullish() })
  .transform(({ filename, version }): ArtifactReference => ({
    filename,
    version: version ?? undefined,
  }));

const preloaded = z
  .object({
    filename: name,
    // Encoders of other languages break lines.
    content: z
      .string()
      .transform((text) => text.replace(/\s/g, ""))
      .pipe(z.base64({ error: "expected base64" })),
    mime_type: z.string().max(maxNameLength).nullish(),
    version: z.int().min(0).nullish(),
  })
  .transform((value): PreloadedArtifact => ({
    filename: value.filename,
    version: value.version ?? 0,
    mimeType: value.mime_type ?? "application/octet-stream",
    bytes: Buffer.from(value.content, "base64"),
  }));

/** Ignores extra members at every level, which newer peers send. */
const request = z.object({
  jsonrpc: z.literal("2.0").default("2.0"),
  id: name,
  method: z.literal(invokeMethod),
  params: z.object({
    task_id: name,
    tool_name: name,
    args: jsonObject.nullish(),
    tool_config: jsonObject.nullish(),
    app_name: name,
    user_id: name,
    session_id: name,
    preloaded_artifacts: entries(preloaded).nullish(),
    artifact_references: entries(reference).nullish(),
    timeout_seconds: z.number().positive().max(maxTimeoutSeconds).nullish(),
    sandbox_profile: name.nullish(),
    gateway: gatewayRequest.nullish(),
  }),
});

/** Undefined without a usable reply topic. Wildcards are unusable: one agent gets the answer. */
export function readReplyAddress(
  properties: Readonly<Record<string, string>>,
): ReplyAddress | undefined {
  const replyTo = properties["replyTo"];
  if (replyTo === undefined || !isPublishableTopic(replyTo)) return undefined;
  const statusTo = properties["statusTo"] ?? properties["a2aStatusTopic"];
  const timestamp = Number(properties["timestamp"]);
  return {
    replyTo,
    statusTo: statusTo !== undefined && isPublishableTopic(statusTo) ? statusTo : undefined,
    sentAtMs: Number.isFinite(timestamp) && timestamp >= earliestSentAtMs ? timestamp : undefined,
    traceparent: readTraceparent(properties),
    tracestate: readTracestate(properties),
    depth: readDepth(properties[depthProperty]),
    isByTool: properties[callerProperty] === "programmatic" || undefined,
    authToken: readAuthToken(properties[authTokenProperty]),
  };
}

function readAuthToken(token: string | undefined): string | undefined {
  return token !== undefined && token.length <= maxAuthTokenLength ? token : undefined;
}

function readDepth(text: string | undefined): number | undefined {
  const depth = Number(text);
  return Number.isInteger(depth) && depth >= 0 ? Math.min(depth, maxReadDepth) : undefined;
}

/** The `id` for the answer, independent of the rest of the request. */
export function readId(document: unknown): string {
  return readNames(document).id ?? unknownId;
}

/** Ids and names of a request; those that it lacks or that are unusable are undefined. */
export interface RequestNames {
  readonly id: string | undefined;
  readonly taskId: string | undefined;
  readonly appName: string | undefined;
  readonly userId: string | undefined;
  readonly sessionId: string | undefined;
}

/** The names in a request, valid or not. */
export function readNames(document: unknown): RequestNames {
  const request = isJsonObject(document) ? document : {};
  const params = isJsonObject(request["params"]) ? request["params"] : {};
  return {
    id: usableName(request["id"]),
    taskId: usableName(params["task_id"]),
    appName: usableName(params["app_name"]),
    userId: usableName(params["user_id"]),
    sessionId: usableName(params["session_id"]),
  };
}

function usableName(value: unknown): string | undefined {
  const isUsable = typeof value === "string" && value.length > 0 && value.length <= maxNameLength;
  return isUsable ? value : undefined;
}

/** Whether a request has no parameters, so that it only asks if a worker serves the tool. */
export function isProbe(document: unknown): boolean {
  if (!isJsonObject(document)) return false;
  const { method, params } = document;
  return method === invokeMethod && isJsonObject(params) && Object.keys(params).length === 0;
}

/**
 * Validates a request. The Invocation shares `args` and `tool_config` with the document. Throws
 * InvocationError `INVALID_REQUEST` that names the first wrong field.
 */
export function decodeRequest(
  document: unknown,
  address: ReplyAddress,
  receivedAtMs: number,
): Invocation {
  if (!isJsonObject(document)) throw invalid("the request must be a JSON object");
  const parsed = request.safeParse(document, { reportInput: true });
  if (!parsed.success) throw invalid(describe(parsed.error));
  const { id, params } = parsed.data;
  const references = params.artifact_references ?? new Map<string, ArtifactReference>();
  const preloadedArtifacts = params.preloaded_artifacts ?? new Map<string, PreloadedArtifact>();
  return Object.freeze<Invocation>({
    id,
    taskId: params.task_id,
    toolName: params.tool_name,
    args: params.args ?? {},
    toolConfig: params.tool_config ?? {},
    caller: {
      appName: params.app_name,
      userId: params.user_id,
      sessionId: params.session_id,
    },
    references,
    preloaded: preloadedArtifacts,
    timeoutSeconds: params.timeout_seconds ?? undefined,
    requestedProfile: params.sandbox_profile ?? undefined,
    replyTo: address.replyTo,
    statusTo: address.statusTo,
    // A clock ahead of the worker's would move the deadline past the caller's own.
    sentAtMs: Math.min(address.sentAtMs ?? receivedAtMs, receivedAtMs),
    ...(address.sentAtClock && { sentAtClock: address.sentAtClock }),
    ...(address.traceparent && { traceparent: address.traceparent }),
    ...(address.tracestate && { tracestate: address.tracestate }),
    ...(params.gateway && { gateway: params.gateway }),
    ...(address.depth !== undefined && { depth: address.depth }),
    ...(address.isByTool === true && { isByTool: true }),
    ...(address.authToken !== undefined && { authToken: address.authToken }),
  });
}

function invalid(reason: string): InvocationError {
  return new InvocationError("INVALID_REQUEST", `Invalid request: ${reason}`);
}

/** `params.timeout_seconds: expected number, found string`: never the value itself. */
function describe(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return "not an invoke request";
  const field = issue.path.map(String).join(".").slice(0, maxFieldLength).toWellFormed();
  if (issue.code === "invalid_type" && issue.input === undefined) {
    return `${field}: missing, expected ${issue.expected}`;
  }
  return `${field}: ${issue.message.replace(/^Invalid input: /, "")}`;
}
