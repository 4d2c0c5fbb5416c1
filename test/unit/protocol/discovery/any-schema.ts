/**
 * Schemas for properties: keywords with values that they may have, and some that they may not.
 */
import { fc } from "@fast-check/vitest";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const type = fc.constantFrom("string", "number", "integer", "boolean", "array", "object", "null");
const names = fc.constantFrom("a", "b", "__proto__");

/** A schema with definitions `A` and `B`, which its references may name. */
export const anySchema: fc.Arbitrary<JsonObject> = fc.letrec<{ schema: JsonObject }>((tie) => {
  const inner = fc.oneof({ maxDepth: 2 }, fc.constant({}), tie("schema"));
  const list = fc.array(inner, { maxLength: 2 });
  const map = fc.dictionary(names, inner, { maxKeys: 2 });
  const scalar = fc.oneof(fc.string(), fc.integer(), fc.double(), fc.constant(null), fc.boolean());
  return {
    schema: fc.record(
      {
        type: fc.oneof(type, fc.array(type, { maxLength: 3 })),
        properties: map,
        required: fc.array(names, { maxLength: 3 }),
        items: inner,
        prefixItems: list,
        anyOf: list,
        oneOf: list,
        allOf: list,
        not: inner,
        $ref: fc.constantFrom("#", "#/$defs/A", "#/$defs/B", "#/$defs/none", "other.json"),
        $defs: fc.dictionary(fc.constantFrom("A", "B"), inner),
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
        additionalProperties: fc.oneof(fc.boolean(), inner),
      },
      { requiredKeys: [] },
    ),
  };
}).schema;
