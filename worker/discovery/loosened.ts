/**
 * What calls are held to: the manifest's schemas as they stand, and those of the code loosened, so
 * that no call is refused that its tool takes. Annotations say what authors mean, not what tools
 * refuse.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { listOf, mapOf, typeList } from "../protocol/discovery/expand-schema.ts";
import type { PublishedDescription } from "../protocol/discovery/messages.ts";
import { mapSubschemas } from "../protocol/discovery/schema-keywords.ts";
import type { CallDescription, ToolDescription } from "../protocol/discovery/tool-description.ts";
import { type Json, type JsonObject, isJsonObject } from "../support/json/json.ts";

/** Keywords that say what a value should be; `format` is a note in any schema. */
const unenforced: ReadonlySet<string> = new Set(["pattern", "uniqueItems", "multipleOf"]);
const none = { type: "null" };

/** The description for calls, where `description` has the manifest's parts before the code's. */
export function forCalls(
  { described }: Pick<ToolEntry, "described">,
  { parameters, artifactParameters: artifacts }: PublishedDescription,
): CallDescription {
  const isDerived = described.parameters === undefined && parameters !== undefined;
  const derivedArtifacts = Array.from(artifacts, ([name, { isList, isOptional }]) => {
    return [name, { isList, isOptional, mayBeText: isOptional && !isList }] as const;
  });
  return {
    parameters: isDerived ? loosened(parameters, artifacts) : parameters,
    config: described.config,
    artifactParameters:
      described.artifactParameters === undefined ? new Map(derivedArtifacts) : artifacts,
  };
}

/**
 * A schema of arguments without `pattern`, `uniqueItems` and `multipleOf`, whose optional
 * parameters accept null, and those of artifacts anything: a request brings artifacts in several
 * ways.
 */
export function loosened(
  schema: JsonObject,
  artifacts: ToolDescription["artifactParameters"],
): JsonObject {
  const loose = withoutUnenforced(schema);
  if (!isJsonObject(loose) || !isJsonObject(loose["properties"])) return mapOf(loose);
  const required = new Set(listOf(loose["required"]));
  const properties = Object.entries(loose["properties"]).map(([name, inner]) => {
    // The schema stays for conversions.
    if (artifacts.has(name)) return [name, { anyOf: [inner, {}] }] as const;
    return [name, required.has(name) ? inner : orNull(inner)] as const;
  });
  return { ...loose, properties: Object.fromEntries(properties) };
}

function withoutUnenforced(schema: Json): Json {
  if (!isJsonObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !unenforced.has(keyword));
  return mapSubschemas(Object.fromEntries(kept), withoutUnenforced, ["not", "if"]);
}

function orNull(schema: Json): Json {
  if (!isJsonObject(schema)) return schema;
  const types = typeList(schema["type"]);
  const isPlain = types.length > 0 && !choosing.some((keyword) => keyword in schema);
  // A message about one schema says more than one about alternatives.
  if (isPlain) return { ...schema, type: [...new Set([...types, "null"])] };
  return acceptsNull(schema) ? schema : { anyOf: [schema, none] };
}

const choosing = ["enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if"];

/** For sure, by what one sees at a glance. */
function acceptsNull({ anyOf, ...others }: JsonObject): boolean {
  const isChoice = choosing.every((keyword) => !(keyword in others)) && !("type" in others);
  if (!isChoice) return false;
  return anyOf === undefined || listOf(anyOf).some((choice) => mapOf(choice)["type"] === "null");
}
