/**
 * The keywords of JSON Schema 2020-12 that the worker knows, and the values they take.
 */
import { isJsonObject, type Json, type JsonObject } from "../../support/json/json.ts";

const schemaKeywords: ReadonlySet<string> = new Set([
  ...["items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains"],
  ...["propertyNames", "not", "if", "then", "else", "contentSchema"],
]);
const schemaListKeywords: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const schemaMapKeywords: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
]);
/** They would let a schema refer to others, or have it read in another way. */
const refusedKeywords: ReadonlySet<string> = new Set([
  ...["$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"],
  ...["$recursiveAnchor", "$vocabulary", "$async", "nullable", "discriminator"],
]);

const dialect = "https://json-schema.org/draft/2020-12/schema";
const typeNames = ["string", "number", "integer", "boolean", "array", "object", "null"];
/** Characters of a `pattern`, at most. */
const maxPatternLength = 1_000;

/** A check, and the expected value in words. */
type Kind = readonly [isValid: (value: Json) => boolean, expected: string];

const number: Kind = [(value) => typeof value === "number", "a number"];
const count: Kind = [(value) => Number.isInteger(value) && Number(value) >= 0, "a whole number"];
const flag: Kind = [(value) => typeof value === "boolean", "true or false"];
const text: Kind = [(value) => typeof value === "string", "text"];
const list: Kind = [Array.isArray, "a list"];
const names: Kind = [isNames, "a list of different names"];

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map(
    (keyword) => [keyword, number] as const,
  ),
  ["multipleOf", [(value) => typeof value === "number" && value > 0, "a number above 0"]],
  ...["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"].map(
    (keyword) => [keyword, count] as const,
  ),
  ...["minContains", "maxContains"].map((keyword) => [keyword, count] as const),
  ...["uniqueItems", "deprecated", "readOnly", "writeOnly", "x-coerce"].map(
    (keyword) => [keyword, flag] as const,
  ),
  ...["title", "description", "format", "$comment", "contentEncoding", "contentMediaType"].map(
    (keyword) => [keyword, text] as const,
  ),
  ["enum", [(value) => Array.isArray(value) && value.length > 0, "a list of values"]],
  ["examples", list],
  ["required", names],
  ["type", [isType, `one of ${typeNames.join(", ")}, or a list of them`]],
  ["dependentRequired", [isMapOfNames, "a map of lists of names"]],
  ["$schema", [isDialect, dialect]],
  ["pattern", [isShortText, `a pattern of at most ${maxPatternLength} characters`]],
  ...[...schemaListKeywords].map(
    (keyword) =>
      [
        keyword,
        [(value: Json) => Array.isArray(value) && value.length > 0, "a list of schemas"],
      ] as const,
  ),
  ...[...schemaMapKeywords].map(
    (keyword) => [keyword, [isJsonObject, "a map of schemas"]] as const,
  ),
]);

/** What is wrong with the value of a keyword; undefined for a fine or an unknown one. */
export function keywordProblem(keyword: string, value: Json): string | undefined {
  if (refusedKeywords.has(keyword)) return "is not used by this worker";
  const [isValid, expected] = kinds.get(keyword) ?? [];
  return isValid === undefined || isValid(value) ? undefined : `expected ${expected}`;
}

/** A schema inside another. */
export interface Subschema {
  readonly path: readonly (string | number)[];
  readonly schema: Json;
}

/** The schemas directly inside a schema whose keywords have fine values. */
export function* subschemas(schema: JsonObject): Generator<Subschema> {
  for (const [keyword, value] of Object.entries(schema)) {
    if (schemaKeywords.has(keyword)) {
      yield { path: [keyword], schema: value };
    } else if (schemaListKeywords.has(keyword)) {
      for (const [index, each] of (value as readonly Json[]).entries())
        yield { path: [keyword, index], schema: each };
    } else if (schemaMapKeywords.has(keyword)) {
      for (const [name, each] of Object.entries(value as JsonObject))
        yield { path: [keyword, name], schema: each };
    }
  }
}

/** With the schemas directly inside it changed, but for those of the keywords `except`. */
export function mapSubschemas(
  schema: JsonObject,
  change: (schema: Json) => Json,
  except: readonly string[] = [],
): JsonObject {
  const members = Object.entries(schema).map(([keyword, value]) => {
    if (except.includes(keyword)) return [keyword, value] as const;
    if (schemaKeywords.has(keyword)) return [keyword, change(value)] as const;
    if (schemaListKeywords.has(keyword))
      return [keyword, (value as readonly Json[]).map(change)] as const;
    if (!schemaMapKeywords.has(keyword)) return [keyword, value] as const;
    const named = Object.entries(value as JsonObject).map(([name, each]) => [name, change(each)]);
    return [keyword, Object.fromEntries(named) as JsonObject] as const;
  });
  return Object.fromEntries(members);
}

function isNames(value: Json): boolean {
  if (!Array.isArray(value)) return false;
  const items: readonly Json[] = value;
  return items.every((name) => typeof name === "string") && new Set(items).size === items.length;
}

function isMapOfNames(value: Json): boolean {
  return isJsonObject(value) && Object.values(value).every(isNames);
}

function isType(value: Json): boolean {
  if (typeof value === "string") return typeNames.includes(value);
  return isNames(value) && (value as string[]).length > 0 && (value as string[]).every(isType);
}

function isDialect(value: Json): boolean {
  return typeof value === "string" && value.replace(/#$/, "") === dialect;
}

function isShortText(value: Json): boolean {
  return typeof value === "string" && value.length <= maxPatternLength;
}
