/**
 * A schema of unknown origin as one of JSON Schema 2020-12 that can be compiled: what has no
 * meaning there is left out, which leaves it open.
 */
import { type Json, type JsonObject, isJsonObject } from "../support/json/json.ts";
import { openCircles } from "./circles.ts";

/** A keyword's value as it is to be; undefined to leave the keyword out. */
type Take = (value: Json) => Json | undefined;

const typeNames = ["string", "integer", "number", "boolean", "object", "array", "null"];
const references = /^#\/(?:\$defs|definitions)\/([\w.-]+)$/;

const isText = (value: Json): value is string => typeof value === "string";
const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);
const isFilled = (value: Json | undefined): value is readonly Json[] =>
  isList(value) && value.length > 0;
const isCount = (value: Json): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isNumber = (value: Json): boolean => typeof value === "number";
const isFlag = (value: Json): boolean => typeof value === "boolean";

/** A schema. `definitions` are those at its root. */
class PlainSchema {
  readonly #definitions: ReadonlySet<string>;
  readonly #keywords: ReadonlyMap<string, Take>;

  constructor(definitions: ReadonlySet<string>) {
    this.#definitions = definitions;
    const only =
      (isUsable: (value: Json) => boolean): Take =>
      (value) =>
        isUsable(value) ? value : undefined;
    const one: Take = (value) =>
      isFlag(value) || isJsonObject(value) ? this.of(value) : undefined;
    const list: Take = (value) =>
      isFilled(value) ? value.map((each) => this.of(each)) : undefined;
    const named: Take = (value) => (isJsonObject(value) ? this.named(value) : undefined);
    const takes: readonly (readonly [Take, string])[] = [
      [only(isText), "title description format $comment contentEncoding contentMediaType"],
      [only(isPattern), "pattern"],
      [only(() => true), "default const"],
      [only(isList), "examples"],
      [only(isFilled), "enum"],
      [only(isNumber), "minimum maximum exclusiveMinimum exclusiveMaximum"],
      [only((value) => typeof value === "number" && value > 0), "multipleOf"],
      [only(isCount), "minLength maxLength minItems maxItems minProperties maxProperties"],
      [only(isFlag), "uniqueItems deprecated readOnly writeOnly"],
      [takeTypes, "type"],
      [takeNames, "required"],
      [(value) => this.#reference(value), "$ref"],
      [one, "items additionalProperties propertyNames not contains if then else"],
      [list, "anyOf allOf oneOf prefixItems"],
      [named, "properties"],
    ];
    this.#keywords = new Map(
      takes.flatMap(([take, names]) => names.split(" ").map((name) => [name, take] as const)),
    );
  }

  of(schema: Json): Json {
    if (schema === false) return false;
    if (!isJsonObject(schema)) return {};
    const plain: Record<string, Json> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      const taken = this.#keywords.get(keyword)?.(value);
      if (taken !== undefined) plain[keyword] = taken;
    }
    // Drafts before 2020-12 have the schemas of a tuple there.
    const { items } = schema;
    if (isFilled(items)) plain["prefixItems"] = items.map((each) => this.of(each));
    return plain;
  }

  named(schemas: JsonObject): JsonObject {
    const entries = Object.entries(schemas).map(([name, each]) => [name, this.of(each)] as const);
    return Object.fromEntries(entries);
  }

  #reference(value: Json): Json | undefined {
    if (value === "#") return value;
    const name = isText(value) ? references.exec(value)?.[1] : undefined;
    return name !== undefined && this.#definitions.has(name) ? `#/$defs/${name}` : undefined;
  }
}

/** The schema of an object in plain form; undefined for a schema of anything else. */
export function plainObjectSchema(schema: Json | undefined): JsonObject | undefined {
  if (!isJsonObject(schema)) return undefined;
  const isObject = schema["type"] === "object" || !Object.hasOwn(schema, "type");
  if (!isObject) return undefined;
  const definitions = [schema["definitions"], schema["$defs"]].filter(isJsonObject);
  const all = Object.fromEntries(definitions.flatMap((each) => Object.entries(each)));
  const plain = new PlainSchema(new Set(Object.keys(all)));
  const root = plain.of(schema) as JsonObject;
  const named = plain.named(all);
  return openCircles(Object.keys(named).length === 0 ? root : { ...root, $defs: named });
}

/** JSON Schema has the patterns of ECMA-262, Python others. */
function isPattern(value: Json): boolean {
  if (!isText(value)) return false;
  try {
    return new RegExp(value, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

function takeTypes(value: Json): Json | undefined {
  if (isText(value)) return typeNames.includes(value) ? value : undefined;
  if (!isFilled(value)) return undefined;
  const isKnown = value.every((each) => isText(each) && typeNames.includes(each));
  return isKnown ? [...new Set(value)] : undefined;
}

function takeNames(value: Json): Json | undefined {
  return isList(value) ? [...new Set(value.filter(isText))] : undefined;
}
