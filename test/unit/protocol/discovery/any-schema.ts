/**
 * Schemas for properties: keywords with values that they may have, and some that they may not.
 */
import { fc } from "../../../support/properties/property.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const type = fc.constantFrom("string", "number", "integer", "boolean", "array", "object", "null");
const names = fc.constantFrom("a", "b", "__proto__");
const scalar = fc.oneof(fc.string(), fc.integer(), fc.constantFrom(null, true, 1.5));

/** Keywords without schemas. */
const plain = fc.record(
  {
    type: fc.oneof(type, fc.array(type, { maxLength: 3 })),
    required: fc.uniqueArray(names, { maxLength: 3 }),
    $ref: fc.constantFrom("#", "#/$defs/A", "#/$defs/B", "#/$defs/none", "other.json"),
    enum: fc.array(scalar, { maxLength: 4 }),
    const: scalar,
    default: scalar,
    examples: fc.array(scalar, { maxLength: 2 }),
    description: scalar,
    format: scalar,
    pattern: scalar,
    minimum: scalar,
    exclusiveMaximum: scalar,
    minLength: scalar,
    minItems: scalar,
    "x-own": scalar,
  },
  { requiredKeys: [] },
);

/** A schema, which may have definitions `A` and `B`, and references to them. */
export const anySchema: fc.Arbitrary<JsonObject> = fc.letrec<{ schema: JsonObject }>((tie) => {
  const inner = fc.oneof({ maxDepth: 4 }, fc.constant({}), tie("schema"));
  const list = fc.array(inner, { minLength: 1, maxLength: 2 });
  const map = fc.dictionary(names, inner, { maxKeys: 2 });
  const one = ["items", "not", "additionalProperties"].map((name) => keyword(name, inner));
  const lists = ["prefixItems", "anyOf", "oneOf", "allOf"].map((name) => keyword(name, list));
  const definitions = fc.dictionary(fc.constantFrom("A", "B"), inner);
  const maps = [keyword("properties", map), keyword("$defs", definitions)];
  const structure = fc.array(fc.oneof(...one, ...lists, ...maps), { maxLength: 2 });
  const some = fc.tuple(plain, fc.nat(), structure);
  return {
    // Few plain keywords, so that many schemas are valid.
    schema: some.map(([all, seed, parts]) => {
      const kept = Object.entries(all).filter((_, index) => ((seed >> index) & 3) === 0);
      return Object.assign(Object.fromEntries(kept), ...parts) as JsonObject;
    }),
  };
}).schema;

function keyword(name: string, value: fc.Arbitrary<unknown>): fc.Arbitrary<object> {
  return value.map((each) => ({ [name]: each }));
}
