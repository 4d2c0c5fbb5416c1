/**
 * Schemas of any origin become ones that a validator can compile and run.
 */
import { fc, test as property } from "../../support/properties/property.ts";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { plainObjectSchema } from "../../../worker/descriptions/plain-schema.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** The schema of a member `a`, in plain form. */
function plainMember(schema: JsonObject, root: JsonObject = {}) {
  const plain = plainObjectSchema({ type: "object", properties: { a: schema }, ...root });
  return (plain?.["properties"] as JsonObject)["a"];
}

/** Whether a schema can be compiled, and accepts a value. */
function accepts(schema: JsonObject, value: unknown): boolean {
  try {
    return ajv.compile(schema)(value);
  } catch {
    return false;
  }
}

describe("a plain schema", () => {
  test("is as it was where it is JSON Schema 2020-12", () => {
    const schema = {
      type: "object",
      title: "Arguments",
      properties: {
        type: { type: ["string", "null"], pattern: "^a", minLength: 1, default: null },
        list: { type: "array", items: { $ref: "#/$defs/Row" }, uniqueItems: true, maxItems: 3 },
        pair: { type: "array", prefixItems: [{ const: 1 }, true] },
        self: { $ref: "#" },
        one: { anyOf: [{ enum: [1, "a"] }, { type: "integer", "x-coerce": true }] },
        map: { patternProperties: { "^a": { type: "string" } }, additionalProperties: false },
        number: { type: "number", exclusiveMinimum: 0, multipleOf: 0.5, description: "x" },
      },
      required: ["list"],
      additionalProperties: false,
      $defs: { Row: { properties: { next: { $ref: "#/$defs/Row" } } } },
    };
    const expected = structuredClone(schema);
    // `true` is written as the empty schema.
    expected.properties.pair.prefixItems[1] = {} as never;
    expect(plainObjectSchema(schema)).toEqual(expected);
  });

  test.each<[what: string, given: JsonObject, plain: JsonObject]>([
    ["words of other languages", { type: "str" }, {}],
    ["a word that OpenAPI has", { type: "string", nullable: true, example: 1 }, { type: "string" }],
    ["bounds of draft 4", { minimum: 1, exclusiveMinimum: true }, { minimum: 1 }],
    ["required of draft 3", { required: true, type: "string" }, { type: "string" }],
    ["names that are given twice", { required: ["a", "a", 1] }, { required: ["a"] }],
    ["tuples of draft 7", { items: [{ type: "string" }] }, { prefixItems: [{ type: "string" }] }],
    ["patterns of Python", { pattern: "(?P<x>a)\\Z", type: "string" }, { type: "string" }],
    ["empty choices", { enum: [], anyOf: [], type: [] }, {}],
    ["counts that are none", { minLength: -1, maxItems: 1.5, multipleOf: 0 }, {}],
    ["references elsewhere", { $ref: "https://example.org/schema" }, {}],
    ["references to nothing", { $ref: "#/$defs/Missing" }, {}],
    ["keywords that change others", { $id: "x", $anchor: "y", $dynamicRef: "#z", id: "u" }, {}],
    ["what is open in a part", { not: { type: "str" }, if: {}, then: false }, {}],
    ["what is tighter without a part", { properties: 5, additionalProperties: false }, {}],
    [
      "names of another dialect",
      { patternProperties: { "(?P<a>)": {} }, additionalProperties: false },
      {},
    ],
    ["rests without a beginning", { prefixItems: 5, items: false }, {}],
    ["exclusive choices", { oneOf: [{}, { type: "str" }] }, { anyOf: [{}, {}] }],
    ["what is no schema", { items: 5, not: "a", properties: [] }, {}],
  ])("leaves out %s", (_, given, plain) => {
    expect(plainMember(given)).toEqual(plain);
  });

  test("has the definitions of earlier drafts", () => {
    const definitions = { Row: { type: "string" } };
    expect(plainMember({ $ref: "#/definitions/Row" }, { definitions })).toEqual({
      $ref: "#/$defs/Row",
    });
  });

  test.each<[what: string, definitions: JsonObject]>([
    ["itself", { A: { $ref: "#/$defs/A" } }],
    [
      "itself by another",
      { A: { anyOf: [{ $ref: "#/$defs/B" }] }, B: { allOf: [{ $ref: "#/$defs/A" }] } },
    ],
  ])("is open where a definition is %s", (_, definitions) => {
    const schema = { properties: { a: { $ref: "#/$defs/A" } }, $defs: definitions };
    const plain = plainObjectSchema(schema) as JsonObject;
    expect((plain["$defs"] as JsonObject)["A"]).toEqual({});
    expect(ajv.compile(plain)({ a: 1 })).toBe(true);
  });

  test("is open where its root is itself", () => {
    expect(plainObjectSchema({ allOf: [{ $ref: "#" }] })).toEqual({ type: "object" });
  });

  test.each([[null], [5], ["x"], [[]], [{ type: "array" }], [undefined]])(
    "is not made of %j",
    (given) => {
      expect(plainObjectSchema(given)).toBeUndefined();
    },
  );

  const words = "type enum properties items anyOf allOf not $ref required minLength pattern format";
  const more = "prefixItems const default additionalProperties oneOf if then patternProperties $id";
  const values = fc.oneof(
    fc.constantFrom("object", "string", "#", "#/$defs/a", "#/$defs/type", "(", "^a", 1, -1, 0.5),
    fc.constantFrom(true, null, [], ["string"], ["a", "a"]),
  );
  const { schema } = fc.letrec((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      values,
      fc.dictionary(
        fc.constantFrom(...`${words} ${more}`.split(" "), "a"),
        fc.oneof(tie("schema"), fc.array(tie("schema"), { maxLength: 3 })),
        { maxKeys: 5 },
      ),
    ),
  }));
  const roots = fc.record({
    properties: schema,
    $defs: fc.dictionary(fc.constantFrom("a", "type"), schema),
  });
  property.prop([roots, fc.jsonValue({ maxDepth: 3 })], { numRuns: 100 })(
    "can be compiled and asked of any value",
    (root, value) => {
      const plain = plainObjectSchema({ type: "object", ...(root as JsonObject) });
      const validate = ajv.compile(plain as JsonObject);
      expect(typeof validate({ a: value, type: value })).toBe("boolean");
    },
  );

  property.prop([roots, fc.dictionary(fc.constantFrom("a", "b"), fc.jsonValue({ maxDepth: 3 }))], {
    numRuns: 100,
  })("accepts what the schema accepts", (root, value) => {
    const given = { type: "object", ...(root as JsonObject) };
    const isAccepted = accepts(plainObjectSchema(given) as JsonObject, value);
    expect(isAccepted || !accepts(given, value)).toBe(true);
  });
});
