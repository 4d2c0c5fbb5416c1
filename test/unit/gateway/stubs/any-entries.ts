/**
 * Tools for tests of stubs: ordinary, hostile and random ones.
 */
import type { CatalogEntry } from "../../../../worker/gateway/catalog.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";
import { anyCharacter, fc } from "../../../support/properties/property.ts";

export const salesQuery: CatalogEntry = {
  id: "sales:query",
  description: "Rows of sales.\n\nBy region.",
  parameters: {
    type: "object",
    properties: {
      region: { enum: ["West", "East"], description: "Where" },
      limit: { type: ["integer", "null"] },
    },
    required: ["region"],
    additionalProperties: false,
  },
  returns: {
    type: "object",
    properties: { rows: { $ref: "#/$defs/rows" } },
    required: ["rows"],
    $defs: { rows: { type: "array", items: { type: "number" } } },
  },
};

/** Texts that would end a comment, a string, a line or a declaration. */
export const breakouts: readonly string[] = [
  "*/ declare const x: 1; /*",
  '"; declare const x: 1; "',
  '"""\nimport os\n"""',
  "'''\nimport os",
  "\\",
  '\\"; import os #',
  "a\nimport os\n",
  "a\rimport os\r",
  "a\u2028import os\u2029import os",
  "a\u0085import os\u000b\u000c",
  "\u0000",
  "\ud800",
  "${process.exit()}",
  "\\N{BULLET} \\x4 \\u12 \\u{110000}",
  "@ts-ignore",
  "*\n@ts-expect-error",
  "# type: ignore",
  "/// <reference path='x' />",
  "__proto__",
  "constructor",
  "]: never",
  "\u202e\u2066",
];

/** Calls of a schema that expands without end. */
const recursive: JsonObject = {
  type: "object",
  properties: { self: { $ref: "#" }, all: { type: "array", items: { $ref: "#" } } },
};
const exploding: JsonObject = {
  $defs: { a: { anyOf: Array.from({ length: 50 }, () => ({ $ref: "#/$defs/a" })) } },
  type: "object",
  properties: { a: { $ref: "#/$defs/a" }, file: { $ref: "file:///etc/passwd" } },
};

/** Tools of which not all fit. */
export const manyTools: readonly CatalogEntry[] = Array.from({ length: 1_000 }, (_, index) => ({
  id: `space${index % 7}:tool${index}`,
  description: `The tool ${index}. ${"It has much to say. ".repeat(20)}`,
  parameters: index % 3 === 0 ? exploding : recursive,
}));

const text = fc.oneof(
  fc.constantFrom(...breakouts),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.constantFrom("region", "limit", "self", "class", "others", "_", "args", "id"),
);

const { schema } = fc.letrec<{ schema: JsonObject; object: JsonObject }>((tie) => {
  const schemas = fc.array(tie("schema"), { maxLength: 3 });
  const object = fc.record({
    type: fc.constant("object"),
    description: text,
    properties: fc.dictionary(text, tie("schema"), { maxKeys: 4, noNullPrototype: true }),
    required: fc.array(text, { maxLength: 3 }),
    additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
  });
  const types = ["string", "number", "integer", "boolean", "null", "array", "object", "odd"];
  const leaf = fc.oneof(
    fc.record({ type: fc.constantFrom(...types) }),
    fc.record({ type: fc.subarray(types) }),
    fc.record({ enum: fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 4 }) }),
    fc.record({ enum: fc.array(text, { maxLength: 4 }) }),
    fc.record({ const: fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true })) }),
    fc.record({ $ref: fc.oneof(fc.constantFrom("#", "#/$defs/a", "#/properties/x", "x"), text) }),
    fc.constantFrom<JsonObject>(recursive, exploding, {}),
  );
  const combined = fc.oneof(
    fc.record({ type: fc.constant("array"), items: tie("schema") }),
    fc.record({ anyOf: schemas }),
    fc.record({ oneOf: schemas }),
    fc.record({ allOf: schemas }),
  );
  return {
    object,
    schema: fc.oneof({ maxDepth: 3 }, leaf, combined, object) as fc.Arbitrary<JsonObject>,
  };
});

const part = fc.oneof(
  fc.constantFrom("call", "search", "class", "sales", "__init__", "query", "constructor", "self"),
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,12}$/),
);

/** Any tools. */
export const anyEntries: fc.Arbitrary<readonly CatalogEntry[]> = fc.uniqueArray(
  fc.record({
    id: fc.oneof(
      part,
      fc.tuple(part, part).map((parts) => parts.join(":")),
    ),
    description: text,
    notes: text,
    parameters: fc.option(schema, { nil: undefined }),
    returns: fc.option(schema, { nil: undefined }),
  }),
  { selector: ({ id }) => id, maxLength: 8 },
);
