/**
 * What a runner says of a tool as a `ToolDescription`. The tool's code may have written it: it is
 * bounded here, and lies at most about the tool itself.
 */
import { InvocationError } from "../protocol/errors.ts";
import type { ArtifactParameter, ToolDescription } from "../protocol/discovery/tool-description.ts";
import { plainObjectSchema } from "./plain-schema.ts";
import { JsonError, type JsonObject, isJsonObject, parseJson } from "../support/json/json.ts";

/** Bytes of a description as JSON. */
export const maxDescriptionBytes = 256 * 1024;
/** Levels of nesting of a description as JSON; one level of a schema takes about two. */
export const maxDescriptionDepth = 64;
/** Values in a description as JSON. */
export const maxDescriptionValues = 10_000;
/** Characters of a description's text. */
export const maxTextLength = 4_000;
/** Parameters that take artifacts. */
export const maxArtifactParameters = 100;

/**
 * Reads the `result` of a runner that described a tool. Unusable members are left out. Throws
 * InvocationError `RESOURCE_EXHAUSTED` beyond a bound.
 */
export function readDescription(result: JsonObject): ToolDescription {
  requireBounded(result);
  const { description, parameters, result: resultSchema, config } = result;
  return {
    description: textOf(description),
    parameters: plainObjectSchema(parameters),
    result: plainObjectSchema(resultSchema),
    config: plainObjectSchema(config),
    artifactParameters: artifactParametersOf(result["artifact_parameters"]),
  };
}

/** The inverse of {@link readDescription}. */
export function writeDescription(described: ToolDescription): JsonObject {
  const { description, parameters, result, config, artifactParameters } = described;
  const artifacts = Array.from(artifactParameters, ([name, { isList, isOptional }]) => {
    return [name, { is_list: isList, is_optional: isOptional }] as const;
  });
  return {
    ...(description !== undefined && { description }),
    ...(parameters !== undefined && { parameters }),
    ...(result !== undefined && { result }),
    ...(config !== undefined && { config }),
    artifact_parameters: Object.fromEntries(artifacts),
  };
}

function requireBounded(result: JsonObject): void {
  const bytes = Buffer.from(JSON.stringify(result));
  if (bytes.byteLength > maxDescriptionBytes) {
    throw tooLarge(`has ${bytes.byteLength} bytes; at most ${maxDescriptionBytes} are accepted`);
  }
  try {
    parseJson(bytes, { depth: maxDescriptionDepth, values: maxDescriptionValues });
  } catch (error) {
    if (error instanceof JsonError) throw tooLarge(`is ${error.message}`);
    throw error;
  }
}

function tooLarge(problem: string): InvocationError {
  return new InvocationError("RESOURCE_EXHAUSTED", `The tool's description ${problem}`);
}

function textOf(text: unknown): string | undefined {
  if (typeof text !== "string" || text.trim() === "") return undefined;
  const cut = text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
  return cut.toWellFormed();
}

function artifactParametersOf(given: unknown): ReadonlyMap<string, ArtifactParameter> {
  const members = isJsonObject(given) ? Object.entries(given).slice(0, maxArtifactParameters) : [];
  return new Map(
    members.flatMap(([name, kind]) => {
      if (!isJsonObject(kind)) return [];
      const isList = kind["is_list"] === true;
      return [[name, { isList, isOptional: kind["is_optional"] === true }] as const];
    }),
  );
}
