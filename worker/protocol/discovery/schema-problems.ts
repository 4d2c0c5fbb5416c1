/**
 * What a worker accepts as a JSON Schema: bounded, self-contained, with keywords of valid values.
 * Schemas come from manifests and from the code of tools.
 */
import { isJsonObject, type Json, type JsonObject } from "../../support/json/json.ts";
import { keywordProblem, subschemas } from "./schema-keywords.ts";

/** Values of any kind in a schema, at most. */
export const maxSchemaValues = 2_000;
/** Levels of a schema, at most. */
export const maxSchemaDepth = 40;
/** Characters of a schema as JSON, at most. */
export const maxSchemaLength = 65_536;

/** A problem and the path to it. */
export interface SchemaProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The first reason why a value is no usable schema of arguments; undefined without one. */
export function parametersProblem(value: unknown): SchemaProblem | undefined {
  const problem = schemaProblem(value);
  if (problem !== undefined || !isJsonObject(value)) return problem;
  if (value["type"] === undefined || value["type"] === "object") return undefined;
  return { path: ["type"], message: 'expected "object": arguments are a map' };
}

/** The first reason why a value is no usable schema; undefined without one. */
export function schemaProblem(value: unknown): SchemaProblem | undefined {
  if (!isJsonObject(value)) return { path: [], message: "expected a JSON Schema, which is a map" };
  return sizeProblem(value) ?? problemIn(value, value);
}

/** What makes a schema too large to be looked at. */
export function sizeProblem(schema: JsonObject): SchemaProblem | undefined {
  const message = excessOf(schema);
  return message === undefined ? undefined : { path: [], message };
}

function excessOf(schema: JsonObject): string | undefined {
  let values = 0;
  let problem: string | undefined;
  const count = (value: unknown, depth: number): void => {
    values++;
    if (depth > maxSchemaDepth) problem ??= `expected at most ${maxSchemaDepth} levels`;
    if (values > maxSchemaValues) problem ??= `expected at most ${maxSchemaValues} values`;
    if (typeof value === "number" && !Number.isFinite(value)) problem ??= "expected finite numbers";
    if (problem !== undefined || typeof value !== "object" || value === null) return;
    for (const each of Object.values(value)) count(each, depth + 1);
  };
  count(schema, 1);
  if (problem !== undefined) return problem;
  const isLong = JSON.stringify(schema).length > maxSchemaLength;
  return isLong ? `expected at most ${maxSchemaLength} characters of JSON` : undefined;
}

function problemIn(schema: Json, root: JsonObject): SchemaProblem | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isJsonObject(schema))
    return { path: [], message: "expected a schema: a map, true or false" };
  for (const [keyword, value] of Object.entries(schema)) {
    const message = keywordProblem(keyword, value) ?? refProblem(keyword, value, root);
    if (message !== undefined) return { path: [keyword], message };
  }
  for (const { path, schema: inner } of subschemas(schema)) {
    const problem = problemIn(inner, root);
    if (problem !== undefined) return { ...problem, path: [...path, ...problem.path] };
  }
  return undefined;
}

function refProblem(keyword: string, value: Json, root: JsonObject): string | undefined {
  if (keyword !== "$ref" || resolveRef(root, value) !== undefined) return undefined;
  return 'expected a reference into this schema, such as "#/$defs/name"';
}

/** The target of a reference to a definition or the whole schema; undefined for any other one. */
export function resolveRef(root: JsonObject, ref: Json | undefined): Json | undefined {
  if (ref === "#") return root;
  const [, group = "", name = ""] =
    typeof ref === "string" ? (/^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? []) : [];
  const definitions = root[group];
  if (!isJsonObject(definitions) || !Object.hasOwn(definitions, unescaped(name))) return undefined;
  return definitions[unescaped(name)];
}

/** A step of a JSON pointer in a URI fragment (RFC 6901, section 6). */
function unescaped(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step;
  }
}
