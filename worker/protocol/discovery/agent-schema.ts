/**
 * Reduces a JSON Schema to the keywords that all generations of agents accept: their schema class
 * refuses a whole schema for one keyword that it does not know. A reduction may allow more than its
 * schema, never less.
 */
import { isJsonObject, type Json, type JsonObject } from "../../support/json/json.ts";
import { expandSchema, listOf, mapOf, mergeSchemas, typeList } from "./expand-schema.ts";

/** The keywords; types are single and lower-case, values of `enum` are texts. */
export const agentKeywords: ReadonlySet<string> = new Set([
  ...["type", "properties", "required", "description", "items", "enum", "nullable", "anyOf"],
  ...["default", "minimum", "maximum", "minItems", "minLength", "pattern", "format", "title"],
  "example",
]);

/** Values of an `enum` that a description lists, at most. */
const maxListedValues = 20;

type Reduced = Record<string, Json>;

/** The arguments of a tool for agents: always a map with properties. */
export function reduceParameters(schema: JsonObject): JsonObject {
  const { properties = {}, required, description } = reduceSchema(schema);
  return {
    type: "object",
    properties,
    ...(required !== undefined && { required }),
    ...(description !== undefined && { description }),
  };
}

/** A schema with the keywords of agents only. */
export function reduceSchema(schema: JsonObject): JsonObject {
  return reduce(expandSchema(schema));
}

/** Reduces a schema without references. */
function reduce(schema: JsonObject): Reduced {
  const given = withoutConst(schema);
  const types = typesOf(given);
  const isNullable = types.includes("null") || given["nullable"] === true;
  const rest = types.filter((type) => type !== "null");
  const choices = rest.length > 1 ? rest.map((type) => ({ type })) : choicesOf(given);
  const own = without(given, "type", "anyOf", "oneOf");
  const [type] = rest;
  if (rest.length === 1 && type !== undefined) own["type"] = type;
  if (choices.length === 0) return nullable(isNullable, { ...texts(own), ...shape(own) });
  const members = choices.filter((choice) => !isNull(choice));
  const reduced = members.map((member) =>
    reduce(mergeSchemas(member, without(own, ...textKeywords))),
  );
  return nullable(isNullable || members.length < choices.length, choose(texts(own), reduced));
}

/** One of several; a single one needs no choice. */
function choose(outer: Reduced, members: readonly Reduced[]): Reduced {
  const [only] = members;
  if (only === undefined) return outer;
  return members.length === 1 ? { ...only, ...outer } : { ...outer, anyOf: members };
}

function nullable(isNullable: boolean, schema: Reduced): Reduced {
  return isNullable ? { ...schema, nullable: true } : schema;
}

/** Alternatives of a schema; none where they only add demands to its own properties or items. */
function choicesOf({ anyOf, oneOf, ...own }: JsonObject): readonly JsonObject[] {
  if (["properties", "items", "prefixItems"].some((keyword) => keyword in own)) return [];
  const members = [listOf(anyOf), listOf(oneOf)].find(({ length }) => length > 0) ?? [];
  const shapes = members.filter(isJsonObject).filter((member) => Object.keys(member).some(isShape));
  return shapes.length === members.length ? shapes : [];
}

function isShape(keyword: string): boolean {
  return ["type", "enum", "const", "properties", "items", "anyOf", "oneOf"].includes(keyword);
}

function isNull(schema: JsonObject): boolean {
  return schema["type"] === "null" || schema["const"] === null;
}

/** `const` as an `enum` of one value. */
function withoutConst({ const: value, ...schema }: JsonObject): JsonObject {
  return value === undefined ? schema : mergeSchemas({ enum: [value] }, schema);
}

/** The types of a schema, from its other keywords where it names none. */
function typesOf(schema: JsonObject): readonly Json[] {
  const { type, enum: values } = schema;
  const named = typeList(type).filter((name) => typeof name === "string");
  if (named.length > 0) return named;
  if (Array.isArray(values)) return [...new Set(listOf(values).map(typeOfValue))];
  if (isJsonObject(schema["properties"])) return ["object"];
  return "items" in schema || "prefixItems" in schema ? ["array"] : [];
}

function typeOfValue(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

function texts(schema: JsonObject): Reduced {
  const { title, description, default: standard, format, examples, example } = schema;
  const shown = example ?? listOf(examples)[0];
  return {
    ...(typeof title === "string" && { title }),
    ...(typeof description === "string" && { description }),
    ...(standard !== undefined && { default: standard }),
    ...(typeof format === "string" && { format }),
    ...(shown !== undefined && { example: shown }),
  };
}

/** They stay with the schema whose alternatives lose them. */
const textKeywords = ["title", "description", "default", "example", "examples"];

function without(schema: JsonObject, ...keywords: readonly string[]): Reduced {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !keywords.includes(name)));
}

/** Type and the keywords that go with it. */
function shape(schema: JsonObject): Reduced {
  const { type } = schema;
  switch (type) {
    case "object":
      return { type, ...propertiesOf(schema) };
    case "array":
      return { type, items: itemsOf(schema), ...counts(schema, "minItems") };
    case "string":
      return { type, ...listed(schema), ...counts(schema, "minLength"), ...patternOf(schema) };
    case "integer":
    case "number":
      return { type, ...range(schema), ...described(schema) };
    case "boolean":
      return { type };
    default:
      return {};
  }
}

function propertiesOf({ properties, required }: JsonObject): Reduced {
  const reduced = Object.entries(mapOf(properties)).map(
    ([name, inner]) => [name, reduce(mapOf(inner))] as const,
  );
  const names = new Set<Json>(reduced.map(([name]) => name));
  const needed = listOf(required).filter((name) => names.has(name));
  return {
    ...(reduced.length > 0 && { properties: Object.fromEntries(reduced) }),
    ...(needed.length > 0 && { required: needed }),
  };
}

function itemsOf({ items, prefixItems }: JsonObject): Reduced {
  const schemas = [...listOf(prefixItems), items].filter((inner) => inner !== undefined);
  const members = schemas.map((inner) => reduce(mapOf(inner)));
  return choose({}, [...new Map(members.map((it) => [JSON.stringify(it), it])).values()]);
}

function counts(schema: JsonObject, keyword: string): Reduced {
  const value = schema[keyword];
  return isNumber(value) && Number.isInteger(value) ? { [keyword]: value } : {};
}

function patternOf({ pattern }: JsonObject): Reduced {
  return typeof pattern === "string" ? { pattern } : {};
}

function listed({ enum: values }: JsonObject): Reduced {
  const strings = listOf(values).filter((value) => typeof value === "string");
  return strings.length > 0 ? { enum: strings } : {};
}

/** Agents know inclusive bounds only; between whole numbers both say the same. */
function range(schema: JsonObject): Reduced {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, enum: values } = schema;
  const step = schema["type"] === "integer" ? 1 : 0;
  const numbers = numbersOf(values);
  const least = [minimum, after(exclusiveMinimum, step), min(numbers)].filter(isNumber);
  const most = [maximum, after(exclusiveMaximum, -step), max(numbers)].filter(isNumber);
  return {
    ...(least.length > 0 && { minimum: Math.max(...least) }),
    ...(most.length > 0 && { maximum: Math.min(...most) }),
  };
}

function after(bound: Json | undefined, step: number): number | undefined {
  if (typeof bound !== "number") return undefined;
  if (step === 0) return bound;
  return step > 0 ? Math.floor(bound) + 1 : Math.ceil(bound) - 1;
}

/** Numbers to choose from, in words. */
function described({ enum: values, description }: JsonObject): Reduced {
  const numbers = numbersOf(values);
  if (numbers.length < 2) return {};
  const shown = numbers.slice(0, maxListedValues).join(", ");
  const list = `One of ${shown}${numbers.length > maxListedValues ? ", …" : ""}.`;
  return { description: typeof description === "string" ? `${description} ${list}` : list };
}

function numbersOf(values: Json | undefined): readonly number[] {
  return listOf(values).filter(isNumber);
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function min(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

function max(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}
