/**
 * Writes a JSON Schema without references and `allOf`: their schemas are merged in.
 */
import { isJsonObject, type Json, type JsonObject } from "../../support/json/json.ts";
import { resolveRef } from "./schema-problems.ts";

/** Schemas in an expansion, at most: references multiply them. */
export const maxExpandedSchemas = 1_000;
/** Characters of an expansion as JSON; what exceeds them keeps types alone. */
export const maxExpandedLength = 131_072;
/** Levels of an expansion, at most. */
export const maxExpandedDepth = 40;

/**
 * The schema with references merged in. A recursive reference, and what exceeds the bounds, keeps
 * type and texts only; beyond {@link maxExpandedLength} the type only.
 */
export function expandSchema(schema: JsonObject): JsonObject {
  return new Expansion(schema).expand(schema, [], 0);
}

class Expansion {
  readonly #root: JsonObject;
  #schemas = 0;
  #length = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** @param inside the references that lead here */
  expand(given: Json | undefined, inside: readonly string[], depth: number): JsonObject {
    if (!isJsonObject(given)) return {};
    if (++this.#schemas > maxExpandedSchemas || depth > maxExpandedDepth)
      return this.#outline(given);
    const { $ref: ref, allOf, ...own } = given;
    if (!this.#hasRoom(withoutChildren(own)))
      return typeof ref === "string" ? this.#target(ref, inside, depth) : this.#outline(given);
    const next = (inner: Json): JsonObject => this.expand(inner, inside, depth + 1);
    const parts = [
      expandChildren(own, next),
      ...(typeof ref === "string" ? [this.#target(ref, inside, depth)] : []),
      ...listOf(allOf).map(next),
    ];
    return parts.reduce(mergeSchemas);
  }

  #target(ref: string, inside: readonly string[], depth: number): JsonObject {
    const target = resolveRef(this.#root, ref);
    if (!isJsonObject(target)) return {};
    if (inside.includes(ref)) return this.#outline(target);
    return this.expand(target, [...inside, ref], depth + 1);
  }

  #outline({ type, title, description }: JsonObject): JsonObject {
    const texts = {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
    };
    return { ...(type !== undefined && { type }), ...(this.#hasRoom(texts) && texts) };
  }

  /** Whether these members still fit, which then count. */
  #hasRoom(members: JsonObject): boolean {
    const { length } = JSON.stringify(members);
    if (this.#length + length > maxExpandedLength) return false;
    this.#length += length;
    return true;
  }
}

/** The members that are not schemas to expand; of properties their names. */
function withoutChildren(schema: JsonObject): JsonObject {
  const own = Object.entries(schema).filter(([keyword]) => !expanded.has(keyword));
  return { ...Object.fromEntries(own), properties: Object.keys(mapOf(schema["properties"])) };
}

const expanded: ReadonlySet<string> = new Set([
  ...["properties", "items", "anyOf", "oneOf", "prefixItems", "$defs", "definitions"],
]);

/** With the schemas inside mapped, in the keywords that agents may get to see. */
function expandChildren(schema: JsonObject, map: (inner: Json) => JsonObject): JsonObject {
  const { properties, items, anyOf, oneOf, prefixItems, ...rest } = schema;
  const lists = Object.entries({ anyOf, oneOf, prefixItems }).filter(([, list]) => list);
  return {
    ...rest,
    ...(isJsonObject(properties) && { properties: mapValues(properties, map) }),
    ...(items !== undefined && { items: map(items) }),
    ...Object.fromEntries(lists.map(([keyword, list]) => [keyword, listOf(list).map(map)])),
  };
}

/** A schema that demands what two demand, as far as one can. The first one's texts go before. */
export function mergeSchemas(one: JsonObject, other: JsonObject): JsonObject {
  const both: Record<string, Json> = { ...other, ...one };
  for (const [keyword, merge] of merges) {
    const [first, second] = [one[keyword], other[keyword]];
    if (first !== undefined && second !== undefined) both[keyword] = merge(first, second);
  }
  return both;
}

type Merge = (one: Json, other: Json) => Json;

const greatest: Merge = (one, other) => Math.max(Number(one), Number(other));
const least: Merge = (one, other) => Math.min(Number(one), Number(other));
const merges: ReadonlyMap<string, Merge> = new Map<string, Merge>([
  ["properties", mergeProperties],
  ["required", (one, other) => [...new Set([...listOf(one), ...listOf(other)])]],
  ["type", mergeTypes],
  ["enum", (one, other) => common(listOf(one), listOf(other))],
  ["items", (one, other) => mergeSchemas(mapOf(one), mapOf(other))],
  ...["minimum", "exclusiveMinimum", "minItems", "minLength"].map((it) => [it, greatest] as const),
  ...["maximum", "exclusiveMaximum"].map((keyword) => [keyword, least] as const),
]);

function mergeProperties(one: Json, other: Json): Json {
  const merged = new Map(Object.entries(mapOf(other)));
  for (const [name, schema] of Object.entries(mapOf(one))) {
    const second = merged.get(name);
    merged.set(name, second === undefined ? schema : mergeSchemas(mapOf(schema), mapOf(second)));
  }
  return Object.fromEntries(merged);
}

function mergeTypes(one: Json, other: Json): Json {
  const types = common(typeList(one), typeList(other));
  return types.length === 1 ? (types[0] ?? types) : types;
}

/** The types of a keyword `type`. */
export function typeList(type: Json | undefined): readonly Json[] {
  return type === undefined || Array.isArray(type) ? listOf(type) : [type];
}

/** Values of both lists; those of the first where there are none, so that nothing is forbidden. */
function common(one: readonly Json[], other: readonly Json[]): readonly Json[] {
  const others = new Set(other);
  const values = one.filter((value) => others.has(value));
  return values.length === 0 ? one : values;
}

export function mapOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : [];
}

function mapValues(map: JsonObject, change: (value: Json) => JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]));
}
