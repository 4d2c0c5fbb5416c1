/**
 * The fields of a tool that describe its arguments, its results and its configuration.
 */
import { z } from "zod";
import { fromAdk } from "../../protocol/discovery/adk-schema.ts";
import {
  type SchemaProblem,
  parametersProblem,
  schemaProblem,
  sizeProblem,
} from "../../protocol/discovery/schema-problems.ts";
import type { ArtifactParameter } from "../../protocol/discovery/tool-description.ts";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { accepts, acceptsKeys, describeValue } from "../../support/text/expectation.ts";
import type { GivenDescription } from "../manifest.ts";

/** Largest number of artifact parameters of a tool. */
const maxArtifactParameters = 100;
/** Largest number of settings in a list. */
const maxSettings = 1_000;

const text = accepts("text");
const flag = accepts("true or false");
const artifactMap = acceptsKeys('a map of "is_list" and "is_optional"', [
  "is_list",
  "is_optional",
  "filename_key",
]);
const artifactMaps = accepts(`a map of at most ${maxArtifactParameters} parameters`);

const schemaMap = z.record(z.string(), z.unknown(), accepts("a JSON Schema, which is a map"));
const settings = accepts(`a JSON Schema, or a list of at most ${maxSettings} settings`);

/** A field for a JSON Schema, also in ADK's form; a problem has its place inside the schema. */
function schemaField<Field extends z.ZodType>(
  field: Field,
  problemOf: (value: unknown) => SchemaProblem | undefined,
): Field {
  return field.superRefine(
    (value, context) => {
      if (!isJsonObject(value)) return;
      const problem = sizeProblem(value) ?? problemOf(fromAdk(value)) ?? patternProblem(value);
      if (problem === undefined) return;
      const { path, message } = problem;
      context.addIssue({ code: "custom", path: [...path], message });
    },
    { when: ({ value }) => isJsonObject(value) },
  );
}

/** Patterns of a manifest are meant to be kept, so that one that cannot be read is a problem. */
function patternProblem(value: unknown): SchemaProblem | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const problem = key === "pattern" ? unreadable(inner) : patternProblem(inner);
    const step = Array.isArray(value) ? Number(key) : key;
    if (problem !== undefined) return { ...problem, path: [step, ...problem.path] };
  }
  return undefined;
}

function unreadable(pattern: unknown): SchemaProblem | undefined {
  if (typeof pattern !== "string") return patternProblem(pattern);
  try {
    new RegExp(pattern, "u");
    return undefined;
  } catch {
    const message = `${describeValue(pattern)} is no regular expression of JavaScript`;
    return { path: [], message };
  }
}

const artifactParameter = z.strictObject(
  {
    is_list: z.boolean(flag).nullish().describe("Whether it takes a list. Default: false."),
    is_optional: z.boolean(flag).nullish().describe("Whether it may be missing. Default: false."),
    filename_key: z.string(text).nullish().describe("Not used by this worker."),
  },
  artifactMap,
);

/** The fields, by name. */
export const describedFields = {
  instructions: z
    .string(text)
    .nullish()
    .describe("How an agent should use the tool, beyond its description."),
  parameters: schemaField(schemaMap, parametersProblem)
    .nullish()
    .describe("JSON Schema of the arguments, in place of that of the code."),
  output_schema: schemaField(schemaMap, schemaProblem)
    .nullish()
    .describe("JSON Schema of the result, which every result is checked against."),
  config_schema: schemaField(
    z.union([schemaMap, z.array(z.unknown()).max(maxSettings)], settings),
    schemaProblem,
  )
    .nullish()
    .describe("JSON Schema of the tool's configuration; or a list of settings, for agents only."),
  artifact_params: z
    .record(z.string(), artifactParameter.nullish(), artifactMaps)
    .refine((map) => Object.keys(map).length <= maxArtifactParameters, artifactMaps)
    .nullish()
    .describe("Parameters that take the filename of an artifact."),
  validate: z
    .boolean(flag)
    .nullish()
    .describe("Whether arguments are checked against the schema. Default: true."),
  coerce: z
    .boolean(flag)
    .nullish()
    .describe('Whether arguments are converted, such as "5" for an integer. Default: false.'),
};

/** The fields that describe one tool. */
export const descriptionKeys = [
  "instructions",
  "parameters",
  "output_schema",
  "config_schema",
  "artifact_params",
] as const;

type Fields = z.output<z.ZodObject<typeof describedFields>>;

/** The valid fields as parts of a description; absent ones have no member. */
export function toGivenDescription(fields: Fields): GivenDescription {
  const { instructions, parameters, output_schema: result, config_schema: config } = fields;
  const { artifact_params: artifacts } = fields;
  const isList = Array.isArray(config);
  return {
    ...(isGiven(instructions) && { instructions }),
    ...(isGiven(parameters) && { parameters: fromAdk(parameters) as JsonObject }),
    ...(isGiven(result) && { result: fromAdk(result) as JsonObject }),
    ...(isGiven(config) && !isList && { config: fromAdk(config) as JsonObject }),
    ...(isList && { configFields: config as readonly Json[] }),
    ...(isGiven(artifacts) && { artifactParameters: toArtifactParameters(artifacts) }),
  };
}

function toArtifactParameters(
  artifacts: NonNullable<Fields["artifact_params"]>,
): ReadonlyMap<string, ArtifactParameter> {
  const entries = Object.entries(artifacts).map(([name, facts]) => {
    const { is_list: isList, is_optional: isOptional } = facts ?? {};
    return [name, { isList: isList ?? false, isOptional: isOptional ?? false }] as const;
  });
  return new Map(entries);
}

function isGiven<Value>(value: Value): value is NonNullable<Value> {
  return value !== undefined && value !== null;
}
