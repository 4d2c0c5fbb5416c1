/**
 * Messages about the descriptions of tools: broadcasts, requests of two generations of agents, and
 * their answers.
 */
import { z } from "zod";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { InvocationError } from "../errors.ts";
import { maxMessageBytes } from "../limits.ts";
import { readId } from "../messages/request.ts";
import { reduceParameters } from "./agent-schema.ts";
import type { ToolDescription } from "./tool-description.ts";

/** Bytes of the largest request that is read; its configuration is all that can be large. */
export const maxDiscoveryRequestBytes = 1024 * 1024;
/** Characters of a description that agents get, at most. */
export const maxDescriptionLength = 16_384;

/** Characters of the full schemas that agents get, at most; larger ones are left out. */
export const maxFullSchemasLength = 262_144;
/** Characters of the reduced parameters that agents get; larger ones are left open. */
export const maxReducedLength = 1_048_576;

/** Methods by generation: `early` agents ask on the topic of the broadcasts. */
export const discoveryMethods = {
  broadcast: "sam_remote_tool/init",
  removed: "sam_remote_tool/removed",
  failed: "sam_remote_tool/failed_discovery",
  request: { early: "sam_remote_tool/init", newer: "sam_remote_tool/init_request" },
} as const;

/** Which names a request and its answer use. */
export type Generation = keyof typeof discoveryMethods.request;

/** What a tool is described by to agents: derived parts, and parts of the manifest alone. */
export interface PublishedDescription extends ToolDescription {
  /** How an agent should use the tool. */
  readonly instructions?: string | undefined;
  /** The manifest's list of settings, as later workers send it. */
  readonly configFields?: readonly Json[] | undefined;
  /** Who may call the tool: `direct`, `programmatic`. Read by workers whose tools call others. */
  readonly allowedCallers?: ReadonlySet<string> | undefined;
}

/** A request for a description. */
export interface DiscoveryRequest {
  readonly id: string;
  readonly toolConfig: JsonObject;
}

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });
const requestOf = (generation: Generation) =>
  z.object({
    id: z.string().min(1).max(1_000),
    method: z.literal(discoveryMethods.request[generation]),
    params: z.object({ tool_config: jsonObject.nullish() }),
  });
const requests = { early: requestOf("early"), newer: requestOf("newer") };

/**
 * Whether a message asks for an answer. On the topic of early agents, broadcasts have no `id`:
 * others' and the worker's own.
 */
export function asksForAnswer(document: unknown): boolean {
  return isJsonObject(document) && document["id"] !== undefined && document["id"] !== null;
}

/** Throws InvocationError `INVALID_REQUEST` that names the first wrong field. */
export function decodeDiscoveryRequest(
  document: unknown,
  generation: Generation,
): DiscoveryRequest {
  const { data, error } = requests[generation].safeParse(document);
  if (data !== undefined) return { id: data.id, toolConfig: data.params.tool_config ?? {} };
  const issue = error?.issues[0];
  const field = issue?.path.join(".") || "request";
  const message = `Invalid request: ${field}: ${issue?.message ?? "not a request"}`;
  throw new InvocationError("INVALID_REQUEST", message);
}

/** A request for the description of a tool, in the names of later agents. */
export function encodeDiscoveryRequest(
  id: string,
  tool: string,
  toolConfig: JsonObject = {},
): Uint8Array {
  const params = { tool_name: tool, tool_config: toolConfig };
  return encode({ id, method: discoveryMethods.request.newer, params });
}

/** The `init` notification of a tool. Throws InvocationError `RESOURCE_EXHAUSTED`. */
export function encodeBroadcast(tool: string, description: PublishedDescription): Uint8Array {
  return encode({ method: discoveryMethods.broadcast, params: parameters(tool, description) });
}

/** The `removed` notification of a tool. */
export function encodeRemoved(tool: string): Uint8Array {
  return encode({ method: discoveryMethods.removed, params: { tool_name: tool } });
}

/** The `failed_discovery` notification of a tool; the error is publishable. */
export function encodeFailed(tool: string, error: InvocationError): Uint8Array {
  const params = { tool_name: tool, error: forEverybody(error) };
  return encode({ method: discoveryMethods.failed, params });
}

/** Descriptions go to all agents: what a tool says at its end may be a secret of its variables. */
function forEverybody({ code, message, isToolsText }: InvocationError) {
  return { code, message: isToolsText ? "The tool's code could not be described" : message };
}

/**
 * The answer to a request, in the names of its generation. Throws InvocationError
 * `RESOURCE_EXHAUSTED`.
 */
export function encodeDescription(
  id: string,
  generation: Generation,
  tool: string,
  description: PublishedDescription,
): Uint8Array {
  const result = parameters(tool, description);
  if (generation === "newer") return encode({ id, result });
  const { description: text, parameters: schema = anyArguments, ...rest } = result;
  return encode({
    id,
    // An early agent reads `parameters_schema` as it stands, and has no answer without one.
    result: { ...rest, tool_description: text, parameters_schema: schema },
  });
}

/** The error that answers a request, valid or not. */
export function encodeDiscoveryError(document: unknown, error: InvocationError): Uint8Array {
  return encode({ id: readId(document), error: forEverybody(error) });
}

const anyArguments = { type: "object", properties: {} };

/** Throws InvocationError `RESOURCE_EXHAUSTED` for more than agents take. */
function encode(members: object): Uint8Array {
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...members }));
  if (bytes.byteLength <= maxMessageBytes) return bytes;
  const text = `The tool's description has ${bytes.byteLength} bytes; at most ${maxMessageBytes} can be sent`;
  throw new InvocationError("RESOURCE_EXHAUSTED", text);
}

/**
 * Names of later workers. Members without a value are left out by JSON. The full schemas stand
 * under a name that no agent reads.
 */
function parameters(tool: string, given: PublishedDescription) {
  const { description, instructions, configFields, artifactParameters, allowedCallers } = given;
  const { parameters: full, result, config } = given;
  return {
    tool_name: tool,
    description: description?.slice(0, maxDescriptionLength).toWellFormed(),
    parameters: full && (within(reduceParameters(full), maxReducedLength) ?? anyArguments),
    artifact_params: artifactParameters.size === 0 ? undefined : artifacts(artifactParameters),
    instructions,
    config_schema: configFields,
    allowed_callers: allowedCallers && [...allowedCallers],
    json_schema:
      (full ?? result ?? config) &&
      within({ parameters: full, result, config }, maxFullSchemasLength),
  };
}

function within<Value>(value: Value, maxLength: number): Value | undefined {
  return JSON.stringify(value).length > maxLength ? undefined : value;
}

function artifacts(given: ToolDescription["artifactParameters"]): object {
  const entries = Array.from(given, ([name, { isList, isOptional }]) => {
    return [name, { is_list: isList, is_optional: isOptional }] as const;
  });
  return Object.fromEntries(entries);
}
