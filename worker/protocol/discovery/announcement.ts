/**
 * Reads what other workers say of their tools: broadcasts, and answers to requests. Nobody vouches
 * for any of it.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { fromAdk } from "./adk-schema.ts";
import { discoveryMethods, maxDescriptionLength } from "./messages.ts";
import { sizeProblem } from "./schema-problems.ts";
import type { ArtifactParameter } from "./tool-description.ts";

/** Bytes of the largest message that is read. */
export const maxAnnouncementBytes = 1024 * 1024;
/** Artifact parameters of a tool; further ones are ignored. */
const maxArtifactParameters = 100;

/** A tool as its worker describes it. Schemas are of a bounded size, and not checked otherwise. */
export interface Announcement {
  readonly description: string | undefined;
  readonly instructions: string | undefined;
  readonly parameters: JsonObject | undefined;
  readonly result: JsonObject | undefined;
  readonly artifactParameters: ReadonlyMap<string, ArtifactParameter>;
  /** Undefined for a worker that does not say. */
  readonly allowedCallers: ReadonlySet<string> | undefined;
}

/** A member of another type counts as absent. */
const text = z.string().optional().catch(undefined);
const flag = z.boolean().catch(false);
const jsonObject = z.custom<JsonObject>(isJsonObject);
const object = jsonObject.optional().catch(undefined);

const params = z.object({
  description: text,
  instructions: text,
  parameters: object,
  artifact_params: object,
  allowed_callers: z.array(z.string()).optional().catch(undefined),
  json_schema: z.object({ parameters: object, result: object }).optional().catch(undefined),
});

const artifactParameter = z.object({ is_list: flag, is_optional: flag });

const broadcast = z.object({ method: z.literal(discoveryMethods.broadcast), params });
const answer = z.object({ result: params });

/** The tool of a broadcast; undefined for any other message, such as an early agent's request. */
export function readBroadcast(document: unknown): Announcement | undefined {
  if (isJsonObject(document) && document["id"] !== undefined) return undefined;
  const { data } = broadcast.safeParse(document);
  return data && announcementOf(data.params);
}

/** The tool of an answer to a request; undefined for an error, and for what is no answer. */
export function readDescription(document: unknown): Announcement | undefined {
  const { data } = answer.safeParse(document);
  return data && announcementOf(data.result);
}

function announcementOf(given: z.output<typeof params>): Announcement {
  const { json_schema: full, allowed_callers: callers } = given;
  return {
    description: given.description?.slice(0, maxDescriptionLength),
    instructions: given.instructions?.slice(0, maxDescriptionLength),
    parameters: bounded(full?.parameters) ?? bounded(given.parameters),
    result: bounded(full?.result),
    artifactParameters: artifactsOf(given.artifact_params ?? {}),
    allowedCallers: callers && new Set(callers),
  };
}

/** In the words of JSON Schema; undefined for one that is too large to be looked at. */
function bounded(schema: JsonObject | undefined): JsonObject | undefined {
  if (schema === undefined || sizeProblem(schema) !== undefined) return undefined;
  const plain = fromAdk(schema);
  return isJsonObject(plain) ? plain : undefined;
}

function artifactsOf(given: JsonObject): Announcement["artifactParameters"] {
  const entries = Object.entries(given).slice(0, maxArtifactParameters);
  return new Map(
    entries.flatMap(([name, value]) => {
      const { data } = artifactParameter.safeParse(value);
      return data ? [[name, { isList: data.is_list, isOptional: data.is_optional }] as const] : [];
    }),
  );
}
