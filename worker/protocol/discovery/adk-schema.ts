/**
 * Schemas in the form of the Agent Development Kit, which agents' YAML and later workers use, as
 * JSON Schema: types in capitals, `nullable`, names of keywords with underscores.
 */
import { isJsonObject, type Json } from "../../support/json/json.ts";

/** Keywords by their other names. */
const keywordNames: ReadonlyMap<string, string> = new Map([
  ["any_of", "anyOf"],
  ["min_items", "minItems"],
  ["max_items", "maxItems"],
  ["min_length", "minLength"],
  ["max_length", "maxLength"],
  ["min_properties", "minProperties"],
  ["max_properties", "maxProperties"],
  ["property_ordering", "propertyOrdering"],
]);
/** A schema of a bounded size as JSON Schema. Any other value stays as it is. */
export function fromAdk(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const schema: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const keyword = keywordNames.get(name) ?? name;
    schema[keyword] = keywordFromAdk(keyword, inner);
  }
  return withNull(schema);
}

function keywordFromAdk(keyword: string, value: Json): unknown {
  switch (keyword) {
    case "type":
      return typeof value === "string" ? value.toLowerCase() : value;
    case "properties":
    case "$defs":
      if (!isJsonObject(value)) return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, fromAdk(inner)]),
      );
    case "anyOf":
    case "oneOf":
    case "allOf":
    case "prefixItems":
      return Array.isArray(value) ? (value as readonly Json[]).map(fromAdk) : value;
    case "items":
    case "additionalProperties":
    case "not":
      return fromAdk(value);
    default:
      return value;
  }
}

/** `nullable: true` in the words of JSON Schema. */
function withNull({ nullable, ...schema }: Record<string, unknown>): Record<string, unknown> {
  if (nullable !== true) return schema;
  const { type, anyOf, enum: values } = schema;
  return {
    ...schema,
    ...(typeof type === "string" && { type: type === "null" ? type : [type, "null"] }),
    ...(Array.isArray(anyOf) && { anyOf: [...(anyOf as unknown[]), { type: "null" }] }),
    ...(Array.isArray(values) &&
      !values.includes(null) && { enum: [...(values as unknown[]), null] }),
  };
}
