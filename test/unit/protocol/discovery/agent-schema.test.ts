/**
 * What agents get to see of a JSON Schema.
 */
import { test as property, fc } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  agentKeywords,
  reduceParameters,
  reduceSchema,
} from "../../../../worker/protocol/discovery/agent-schema.ts";
import type { Json, JsonObject } from "../../../../worker/support/json/json.ts";
import { anySchema } from "./any-schema.ts";

const text = { type: "string" };
const whole = { type: "integer" };
const shapeOf = (name: string, value: JsonObject) => ({
  type: "object",
  properties: { [name]: value },
});

describe("a schema for agents", () => {
  test.each<[string, JsonObject, JsonObject]>([
    [
      "keeps what they know",
      { ...text, minLength: 1, pattern: "^a", format: "date", title: "T" },
      { ...text, minLength: 1, pattern: "^a", format: "date", title: "T" },
    ],
    [
      "loses what they do not",
      { ...text, maxLength: 3, $comment: "c", readOnly: true, "x-own": 1 },
      text,
    ],
    [
      "says additionalProperties nowhere",
      { type: "object", additionalProperties: whole },
      { type: "object" },
    ],
    [
      "has null as nullable",
      { type: ["string", "null"], default: null },
      { ...text, nullable: true, default: null },
    ],
    [
      "has null among alternatives as nullable",
      { anyOf: [text, { type: "null" }] },
      { ...text, nullable: true },
    ],
    [
      "has several types as alternatives",
      { type: ["string", "integer"], minimum: 1 },
      { anyOf: [text, { ...whole, minimum: 1 }] },
    ],
    [
      "keeps texts outside of alternatives",
      { description: "d", anyOf: [text, whole] },
      { description: "d", anyOf: [text, whole] },
    ],
    ["has oneOf as anyOf", { oneOf: [text, whole] }, { anyOf: [text, whole] }],
    ["has a text const as its only value", { const: "a" }, { ...text, enum: ["a"] }],
    ["has a number const as a range", { const: 5 }, { ...whole, minimum: 5, maximum: 5 }],
    [
      "lists numbers in words",
      { enum: [3, 1], description: "Size." },
      { ...whole, minimum: 1, maximum: 3, description: "Size. One of 3, 1." },
    ],
    ["has only texts in enum", { enum: ["a", null] }, { ...text, enum: ["a"], nullable: true }],
    [
      "has exclusive bounds of whole numbers",
      { ...whole, exclusiveMinimum: 0, exclusiveMaximum: 3 },
      { ...whole, minimum: 1, maximum: 2 },
    ],
    [
      "has exclusive bounds of others as inclusive ones",
      { type: "number", exclusiveMinimum: 0 },
      { type: "number", minimum: 0 },
    ],
    ["has the first of examples", { ...text, examples: ["a", "b"] }, { ...text, example: "a" }],
    [
      "has a tuple as a list of any of its types",
      { type: "array", prefixItems: [text, whole, text] },
      { type: "array", items: { anyOf: [text, whole] } },
    ],
    ["has a list of anything with items", { type: "array" }, { type: "array", items: {} }],
    [
      "merges allOf",
      {
        allOf: [
          { ...shapeOf("a", text), required: ["a"] },
          { ...shapeOf("b", whole), required: ["b", "a"] },
        ],
      },
      { type: "object", properties: { a: text, b: whole }, required: ["a", "b"] },
    ],
    [
      "requires no property that it does not name",
      { ...shapeOf("a", text), required: ["a", "b"] },
      { ...shapeOf("a", text), required: ["a"] },
    ],
    [
      "has references inlined, with their own texts",
      {
        ...shapeOf("a", { $ref: "#/$defs/A", description: "outer" }),
        $defs: { A: { ...text, description: "inner" } },
      },
      shapeOf("a", { ...text, description: "outer" }),
    ],
    [
      "keeps its properties when alternatives only demand some",
      { ...shapeOf("a", text), anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      shapeOf("a", text),
    ],
  ])("%s", (_, schema, reduced) => {
    expect(reduceSchema(schema)).toEqual(reduced);
  });

  test("cuts a recursion at its second turn", () => {
    const node = {
      type: "object",
      description: "A node.",
      properties: { next: { $ref: "#/$defs/Node" } },
    };
    const cut = { type: "object", description: "A node." };
    expect(reduceSchema({ $ref: "#/$defs/Node", $defs: { Node: node } })).toEqual({
      ...cut,
      properties: { next: cut },
    });
  });

  test("is small however many references a schema multiplies", () => {
    const defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` };
        return [`d${index}`, { type: "object", properties: { a: next, b: next } }] as const;
      }),
    );
    const reduced = reduceSchema({ $ref: "#/$defs/d0", $defs: { ...defs, d30: text } });
    expect(JSON.stringify(reduced).length).toBeLessThan(100_000);
  });
});

test("long texts are not multiplied by references", () => {
  const names = Array.from({ length: 900 }, (_, index) => `p${index}`);
  const properties = Object.fromEntries(names.map((name) => [name, { $ref: "#/$defs/T" }]));
  const $defs = { T: { ...text, description: "long".repeat(4_000) } };
  const reduced = reduceParameters({ type: "object", properties, $defs });
  expect(JSON.stringify(reduced).length).toBeLessThan(200_000);
  expect(reduced["properties"]).toMatchObject({ p0: { ...$defs.T }, p400: text });
});

describe("the arguments of a tool", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["are a map", {}, { type: "object", properties: {} }],
    [
      "are a map, whatever else a schema says",
      { anyOf: [text, whole], description: "d" },
      { type: "object", properties: {}, description: "d" },
    ],
  ])("%s", (_, schema, reduced) => {
    expect(reduceParameters(schema)).toEqual(reduced);
  });
});

/** Throws for anything that the schema class of agents refuses. */
function requireAccepted(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) throw new Error("no schema");
  for (const [keyword, value] of Object.entries(schema) as [string, Json][]) {
    expect(agentKeywords).toContain(keyword);
    if (keyword === "properties") Object.values(value as object).forEach(requireAccepted);
    if (keyword === "items") requireAccepted(value);
    if (keyword === "anyOf") (value as unknown[]).forEach(requireAccepted);
    if (keyword === "type") expect(value).toBeTypeOf("string");
    if (keyword === "nullable") expect(value).toBe(true);
    if (keyword === "enum" || keyword === "required")
      for (const each of value as unknown[]) expect(each).toBeTypeOf("string");
    if (["description", "title", "format", "pattern"].includes(keyword))
      expect(value).toBeTypeOf("string");
    if (["minimum", "maximum"].includes(keyword)) expect(value).toBeTypeOf("number");
    if (["minItems", "minLength"].includes(keyword)) expect(value).toSatisfy(Number.isInteger);
  }
}

describe("any schema", () => {
  property.prop([anySchema])("is reduced to what agents accept", (schema) => {
    requireAccepted(reduceSchema(schema));
  });

  property.prop([fc.dictionary(fc.string(), fc.jsonValue())])("and any map is", (schema) => {
    requireAccepted(reduceParameters(schema as JsonObject));
  });
});
