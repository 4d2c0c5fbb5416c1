/**
 * What a schema accepts, in few words.
 */
import type { Json } from "../../support/json/json.ts";
import { describeValue } from "../../support/text/expectation.ts";
import { listOf, mapOf, typeList } from "./expand-schema.ts";

/** Names or values that a text lists, at most. */
const maxListed = 10;

/** Such as `text or nothing`. */
export function wordsOf(schema: Json | undefined): string {
  const { type, enum: values, const: constant, anyOf, oneOf } = mapOf(schema);
  if (constant !== undefined) return describeValue(constant);
  if (Array.isArray(values)) return `one of ${listed(listOf(values))}`;
  const choices = [...listOf(anyOf), ...listOf(oneOf)].map((choice) => wordsOf(choice));
  const words = [...new Set([...typeList(type).map(typeWords), ...choices])];
  return words.length === 0 ? "a value" : words.slice(0, maxListed).join(" or ");
}

/** A type of JSON Schema as the manifest's messages call it. */
export function typeWords(type: Json): string {
  switch (type) {
    case "integer":
      return "a whole number";
    case "number":
      return "a number";
    case "string":
      return "text";
    case "boolean":
      return "true or false";
    case "array":
      return "a list";
    case "object":
      return "a map";
    default:
      return "nothing";
  }
}

/** Some values, and the number of the others. */
export function listed(values: readonly Json[]): string {
  const shown = values.slice(0, maxListed).map(describeValue).join(", ");
  return values.length > maxListed ? `${shown} and ${values.length - maxListed} more` : shown;
}
