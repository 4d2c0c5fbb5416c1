/**
 * Converts values to the types of a schema where nothing is lost: models send `"5"` for 5.
 */
import { type Json, type JsonObject, isJsonObject, parseJson } from "../../support/json/json.ts";
import { listOf, mapOf, typeList } from "../../protocol/discovery/expand-schema.ts";
import { resolveRef } from "../../protocol/discovery/schema-problems.ts";

/** A schema with this keyword has values converted, and so have the schemas inside it. */
export const coerceKeyword = "x-coerce";

/** Levels of schemas that are followed, at most: references have no end of their own. */
const maxDepth = 100;

/**
 * The value converted, or the same value where nothing is to be converted. `isOn` holds for the
 * whole schema; else the parts with {@link coerceKeyword} are converted.
 */
export function coerce(value: Json, schema: JsonObject, isOn: boolean): Json {
  return new Coercion(schema).convert(value, schema, isOn, 0);
}

class Coercion {
  readonly #root: JsonObject;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  convert(value: Json, given: Json | undefined, isOnOutside: boolean, depth: number): Json {
    if (!isJsonObject(given) || depth > maxDepth) return value;
    const { $ref: ref, allOf, ...schema } = given;
    const isOn = isOnOutside || given[coerceKeyword] === true;
    const next = (inner: Json, of: Json | undefined) => this.convert(inner, of, isOn, depth + 1);
    const own = isOn ? toType(value, typeList(schema["type"])) : value;
    const chosen = choose(own, schema, next);
    const inside = mapInside(chosen, schema, next);
    const others = [...(ref === undefined ? [] : [resolveRef(this.#root, ref)]), ...listOf(allOf)];
    return others.reduce<Json>(next, inside);
  }
}

type Next = (value: Json, schema: Json | undefined) => Json;

/** By the alternative that has the value's type, else by the first that can be converted to. */
function choose(value: Json, { anyOf, oneOf }: JsonObject, next: Next): Json {
  const choices = [...listOf(anyOf), ...listOf(oneOf)];
  const fitting = choices.find((choice) => fits(value, typesOf(choice)));
  if (fitting !== undefined) return next(value, fitting);
  for (const choice of choices) {
    const converted = next(value, choice);
    if (converted !== value) return converted;
  }
  return value;
}

function typesOf(schema: Json): readonly Json[] {
  return isJsonObject(schema) ? typeList(schema["type"]) : [];
}

function mapInside(value: Json, schema: JsonObject, next: Next): Json {
  if (Array.isArray(value)) {
    const first = listOf(schema["prefixItems"]);
    const items = value as readonly Json[];
    const mapped: readonly Json[] = items.map((item, index) =>
      next(item, first[index] ?? schema["items"]),
    );
    return mapped.some((item, index) => item !== items[index]) ? mapped : value;
  }
  if (!isJsonObject(value)) return value;
  const properties = new Map(Object.entries(mapOf(schema["properties"])));
  const entries = Object.entries(value).map(([name, inner]) => {
    return [name, next(inner, properties.get(name) ?? schema["additionalProperties"])] as const;
  });
  const isChanged = entries.some(([name, inner]) => inner !== value[name]);
  return isChanged ? Object.fromEntries(entries) : value;
}

/** Converts to the first type that it can be converted to without loss. */
function toType(value: Json, types: readonly Json[]): Json {
  if (types.length === 0 || fits(value, types)) return value;
  for (const type of types) {
    const converted = typeof value === "string" ? fromText(value.trim(), type) : undefined;
    if (converted !== undefined) return converted;
  }
  return types.includes("array") && value !== null ? [value] : value;
}

/** Whether a value has one of some types. */
export function fits(value: Json, types: readonly Json[]): boolean {
  return types.some((type) => {
    switch (type) {
      case "integer":
        return Number.isInteger(value);
      case "array":
        return Array.isArray(value);
      case "object":
        return isJsonObject(value);
      case "null":
        return value === null;
      default:
        return typeof value === type;
    }
  });
}

function fromText(text: string, type: Json): Json | undefined {
  switch (type) {
    case "integer":
      return /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
    case "number":
      return /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text))
        ? Number(text)
        : undefined;
    case "boolean":
      // Python's spelling, too.
      return /^[Tt]rue$/.test(text) || (/^[Ff]alse$/.test(text) ? false : undefined);
    case "object":
    case "array": {
      const parsed = parsedFrom(text);
      return parsed !== undefined && fits(parsed, [type]) ? parsed : undefined;
    }
    default:
      return undefined;
  }
}

function parsedFrom(text: string): Json | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  try {
    return parseJson(Buffer.from(text));
  } catch {
    return undefined;
  }
}
