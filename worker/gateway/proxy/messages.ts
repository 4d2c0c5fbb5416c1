/**
 * The messages of a channel (tool-runner/PROTOCOL.md). Those of a sandbox are read strictly.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { detailLevels, gatewayCodes, toolOps } from "../gateway.ts";
import { ChannelViolation } from "./frames.ts";

/** Characters of the id of a request. */
const maxRequestIdLength = 64;
/** Steps of a chain that is read; the gateway refuses those that it does not run. */
export const maxReadSteps = 1_000;
/** Characters of a field's name in the message of a violation. */
const maxFieldLength = 100;

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });
const requestId = z.string().min(1).max(maxRequestIdLength);
const text = z.string();
// Their bounds are the gateway's, which refuses without closing the channel.
const count = z.number();

const step = z.strictObject({
  toolId: text,
  args: jsonObject.exactOptional(),
  usePrevious: z.boolean().exactOptional(),
});

function request<Type extends string, Payload extends z.ZodType>(type: Type, payload: Payload) {
  return z.strictObject({ type: z.literal(type), id: requestId, payload });
}

const requests = [
  request("search_tools", z.strictObject({ query: text, limit: count })),
  request("list_namespaces", z.strictObject({})),
  request("describe_tool", z.strictObject({ id: text, level: z.enum(detailLevels) })),
  request("list_tool_examples", z.strictObject({ id: text, max: count })),
  request("run_tool", z.strictObject({ id: text, args: jsonObject })),
  request("run_chain", z.strictObject({ steps: z.array(step).max(maxReadSteps) })),
  request(
    "load_artifact",
    z.strictObject({
      filename: text,
      version: z.int().min(0).exactOptional(),
      offset: count,
      length: count,
    }),
  ),
  z.strictObject({ type: z.literal("cancel"), id: requestId }),
] as const;
const anyRequest = z.discriminatedUnion("type", requests);
const requestTypes: ReadonlySet<unknown> = new Set(requests.map(({ shape }) => shape.type.value));

/** What a sandbox sends. */
export type ProgramMessage = z.infer<typeof anyRequest>;
/** What is answered. */
export type ProgramRequest = Exclude<ProgramMessage, { type: "cancel" }>;
export type RequestType = ProgramRequest["type"];
/** The payload of a request. */
export type RequestPayload<Type extends RequestType> = Extract<
  ProgramRequest,
  { type: Type }
>["payload"];

/** Reads a frame of a sandbox. Throws ChannelViolation. */
export function readProgramMessage(frame: JsonObject): ProgramMessage {
  if (!requestTypes.has(frame["type"])) {
    throw new ChannelViolation("unknown_type", "a message has an unknown type");
  }
  const call = plainCall(frame);
  if (call !== undefined) return call;
  const { data, error } = anyRequest.safeParse(frame);
  if (data !== undefined) return data;
  throw new ChannelViolation("invalid_message", `a message is invalid: ${describe(error)}`);
}

/**
 * A `run_tool` as its schema has it, read without it: that takes 50 µs after a pause, as most calls
 * come. Undefined for any other frame.
 */
function plainCall(frame: JsonObject): ProgramRequest | undefined {
  const { type, id, payload } = frame;
  if (type !== "run_tool" || typeof id !== "string" || !isJsonObject(payload)) return undefined;
  const { id: toolId, args } = payload;
  if (typeof toolId !== "string" || !isJsonObject(args)) return undefined;
  const hasOthers = Object.keys(frame).length > 3 || Object.keys(payload).length > 2;
  if (hasOthers || id.length === 0 || id.length > maxRequestIdLength) return undefined;
  return { type, id, payload: { id: toolId, args } };
}

/** `payload.id: expected string`: never a value. */
function describe({ issues: [issue] }: z.ZodError): string {
  const field = issue?.path.map(String).join(".").slice(0, maxFieldLength) ?? "";
  if (issue?.code === "unrecognized_keys") return `${field || "message"}: has another member`;
  if (issue?.code === "invalid_type") return `${field}: expected ${issue.expected}`;
  return `${field}: is not as it has to be`;
}

const stepError = z.object({
  code: z.enum(gatewayCodes),
  message: text,
  retryable: z.boolean(),
  data: jsonObject.exactOptional(),
});
const artifact = z.object({ filename: text, version: count, mimeType: text, sizeBytes: count });
const stepResult = z.object({
  toolId: text,
  structured: jsonObject.exactOptional(),
  artifacts: z.array(artifact).exactOptional(),
  error: stepError.exactOptional(),
});
const summary = z.object({
  id: text,
  name: text,
  namespace: text,
  shortDescription: text,
  tags: z.array(text),
});
const example = z.object({
  title: text.exactOptional(),
  description: text,
  args: jsonObject,
  resultHint: text.exactOptional(),
});
const runResult = z.object({ structured: jsonObject, artifacts: z.array(artifact) });

/** The payloads of the answers, by the type of the request. A sandbox trusts its worker. */
export const answerPayloads = {
  search_tools: z.object({ results: z.array(summary) }),
  list_namespaces: z.object({ namespaces: z.array(text) }),
  describe_tool: z.object({
    id: text,
    name: text,
    namespace: text,
    summary: text,
    parameters: jsonObject.exactOptional(),
    returns: jsonObject.exactOptional(),
    notes: text.exactOptional(),
    examples: z.array(example).exactOptional(),
  }),
  list_tool_examples: z.object({ examples: z.array(example) }),
  run_tool: runResult,
  run_chain: runResult.extend({ stepResults: z.array(stepResult) }),
  load_artifact: z.object({ content: text, version: count, mimeType: text, sizeBytes: count }),
} as const satisfies Record<RequestType, z.ZodType>;

/** The payload of an answer. */
export type AnswerPayload<Type extends RequestType> = z.infer<(typeof answerPayloads)[Type]>;

/** What a worker sends. */
export const workerMessage = z.discriminatedUnion("type", [
  z.object({ type: z.literal("response"), id: requestId, payload: jsonObject }),
  z.object({
    type: z.literal("error"),
    id: requestId,
    payload: z.object({
      error: text,
      code: z.enum(gatewayCodes),
      retryable: z.boolean(),
      op: z.enum(toolOps),
      data: jsonObject.exactOptional(),
      stepResults: z.array(stepResult).exactOptional(),
    }),
  }),
]);
export type WorkerMessage = z.infer<typeof workerMessage>;
