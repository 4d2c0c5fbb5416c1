/**
 * What is wrong with a value that does not match its schema, in words: where, what was expected,
 * what came.
 */
import type { ErrorObject } from "ajv/dist/2020.js";
import { listOf, mapOf } from "../../protocol/discovery/expand-schema.ts";
import { resolveRef } from "../../protocol/discovery/schema-problems.ts";
import { listed, typeWords, wordsOf } from "../../protocol/discovery/schema-words.ts";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { describeValue } from "../../support/text/expectation.ts";

/** Where and why a value does not match. Both are public, but for short values of the caller. */
export interface Mismatch {
  /** Such as `.items[0].name`; empty for the whole value. */
  readonly path: string;
  readonly message: string;
}

/** Schemas that are looked at for secrets, at most. */
const maxLookedAt = 200;

/** @param errors of a validation that stops at the first error; alternatives have one each */
export function mismatchOf(
  errors: readonly ErrorObject[],
  value: Json,
  schema: JsonObject,
  isAllSecret: boolean,
): Mismatch {
  const error = deepest(errors);
  if (error === undefined) return { path: "", message: "does not match the schema" };
  const steps = stepsOf(error.instancePath);
  const { missingProperty, additionalProperty, unevaluatedProperty } = error.params as Readonly<
    Record<string, string | undefined>
  >;
  const named = missingProperty ?? additionalProperty ?? unevaluatedProperty;
  const parent = mapOf(error.parentSchema);
  if (missingProperty !== undefined) {
    const expected = wordsOf(mapOf(parent["properties"])[missingProperty]);
    return { path: pathOf([...steps, missingProperty]), message: `missing, expected ${expected}` };
  }
  if (named !== undefined) {
    const names = Object.keys(mapOf(parent["properties"]));
    const known = names.length === 0 ? "none is expected" : `expected are ${listed(names)}`;
    return { path: pathOf([...steps, named]), message: `unknown; ${known}` };
  }
  const isSecret = isAllSecret || isMarked(parent) || isSecretAt(schema, steps, value);
  const found = isSecret ? typeWords(typeOf(error.data as Json)) : describeValue(error.data);
  return { path: pathOf(steps), message: `expected ${expectedBy(error, parent)}, found ${found}` };
}

/** The last error is that of the whole value; an alternative that matched further says more. */
function deepest(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const depth = (error: ErrorObject): number => stepsOf(error.instancePath).length;
  return errors.reduceRight<ErrorObject | undefined>(
    (best, error) => (best !== undefined && depth(best) >= depth(error) ? best : error),
    undefined,
  );
}

/** Words for what the failed keyword demands. */
function expectedBy({ keyword, schema }: ErrorObject, parent: JsonObject): string {
  const bound = String(schema);
  switch (keyword) {
    case "type":
    case "enum":
    case "const":
    case "anyOf":
    case "oneOf":
      return wordsOf(parent);
    case "minimum":
      return `a number of at least ${bound}`;
    case "maximum":
      return `a number of at most ${bound}`;
    case "exclusiveMinimum":
      return `a number above ${bound}`;
    case "exclusiveMaximum":
      return `a number below ${bound}`;
    case "multipleOf":
      return `a multiple of ${bound}`;
    case "minLength":
      return `text of at least ${bound} characters`;
    case "maxLength":
      return `text of at most ${bound} characters`;
    case "minItems":
      return `a list of at least ${bound} values`;
    case "maxItems":
      return `a list of at most ${bound} values`;
    case "uniqueItems":
      return "a list of different values";
    case "pattern":
      return `text that matches ${bound}`;
    default:
      return `a value that keeps "${keyword}" of the schema`;
  }
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The steps of a JSON pointer. */
function stepsOf(pointer: string): readonly string[] {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function pathOf(steps: readonly string[]): string {
  return steps
    .map((step) => {
      if (/^\d+$/.test(step)) return `[${step}]`;
      return /^[\w-]{1,60}$/.test(step) ? `.${step}` : `[${describeValue(step)}]`;
    })
    .join("");
}

/** Whether a schema on the way to a value makes it secret: `writeOnly`, or format `password`. */
function isSecretAt(root: JsonObject, steps: readonly string[], value: Json): boolean {
  let schemas = spread(root, [root]);
  let at: Json | undefined = value;
  for (const step of ["", ...steps]) {
    if (step !== "") {
      schemas = spread(
        root,
        schemas.flatMap((schema) => insides(schema, step, at)),
      );
      at = Array.isArray(at) ? (at as readonly Json[])[Number(step)] : mapOf(at)[step];
    }
    if (schemas.length >= maxLookedAt) return true;
    if (schemas.some(isMarked)) return true;
  }
  return false;
}

function isMarked({ writeOnly, format }: JsonObject): boolean {
  return writeOnly === true || format === "password";
}

/** Schemas that may be of the value at a step: those of all patterns are. */
function insides(schema: JsonObject, step: string, value: Json | undefined): readonly Json[] {
  const inside = Array.isArray(value)
    ? [
        listOf(schema["prefixItems"])[Number(step)],
        ...["items", "contains", "unevaluatedItems"].map((keyword) => schema[keyword]),
      ]
    : [
        new Map(Object.entries(mapOf(schema["properties"]))).get(step),
        ...Object.values(mapOf(schema["patternProperties"])),
        ...["additionalProperties", "unevaluatedProperties"].map((keyword) => schema[keyword]),
      ];
  return inside.filter((it) => it !== undefined);
}

/** With the schemas that they consist of. */
function spread(root: JsonObject, schemas: readonly Json[]): readonly JsonObject[] {
  const found = new Set<JsonObject>();
  const queue = [...schemas];
  for (const schema of queue) {
    if (!isJsonObject(schema) || found.has(schema) || found.size >= maxLookedAt) continue;
    found.add(schema);
    const { $ref: ref, allOf, anyOf, oneOf, not, if: condition, then, else: other } = schema;
    const dependent = Object.values(mapOf(schema["dependentSchemas"]));
    const target = resolveRef(root, ref);
    queue.push(...listOf(allOf), ...listOf(anyOf), ...listOf(oneOf), ...dependent);
    queue.push(...[target, not, condition, then, other].filter((it) => it !== undefined));
  }
  return [...found];
}
