/**
 * Checks a value against a JSON Schema, inside the thread of `schema-checker.ts`.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import type { Json, JsonObject } from "../../support/json/json.ts";
import { coerce } from "./coerce.ts";
import { type Mismatch, mismatchOf } from "./mismatch.ts";

/** Compiled schemas that are kept. */
const maxCompiled = 500;

/** What is checked. */
export interface CheckRequest {
  /** Same for the same schema. */
  readonly key: number;
  readonly schema: JsonObject;
  readonly value: Json;
  /** Whether all values are converted to the types of the schema. */
  readonly coerce: boolean;
  /** Whether messages show no value at all. */
  readonly isSecret: boolean;
}

/** The outcome of a check; `value` only where it was converted. */
export type CheckAnswer =
  | { readonly ok: true; readonly value?: Json }
  | { readonly ok: false; readonly mismatch: Mismatch };

/** Compiles schemas once. */
export class Checks {
  readonly #compiled = new LRUCache<number, ValidateFunction>({ max: maxCompiled });

  /** Converts and checks. Throws for a schema that cannot be compiled. */
  check({ key, schema, value, coerce: isOn, isSecret }: CheckRequest): CheckAnswer {
    const validate = this.#compiled.get(key) ?? compile(schema);
    this.#compiled.set(key, validate);
    const converted = coerce(value, schema, isOn);
    if (validate(converted))
      return converted === value ? { ok: true } : { ok: true, value: converted };
    const errors: readonly ErrorObject[] = validate.errors ?? [];
    return { ok: false, mismatch: mismatchOf(errors, converted, schema, isSecret) };
  }
}

/** A validator of its own, so that nothing is kept of a schema whose tool is gone. */
function compile(schema: JsonObject): ValidateFunction {
  const ajv = new Ajv2020({
    strict: false,
    verbose: true,
    // In this version of JSON Schema, formats are notes.
    validateFormats: false,
    // What JavaScript's objects inherit is no member of a value.
    ownProperties: true,
    // Checked before, and compiled for each Ajv otherwise.
    validateSchema: false,
    meta: false,
    logger: false,
    code: { regExp: readablePattern },
  });
  return ajv.compile(schema);
}

/** Code of other languages may have patterns that JavaScript cannot read: they match everything. */
function readablePattern(pattern: string, flags: string): Pick<RegExp, "test"> {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return { test: () => true };
  }
}
readablePattern.code = "readablePattern";
