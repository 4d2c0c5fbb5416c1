/**
 * Which schemas a worker uses.
 */
import { test as property, fc } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { Checks } from "../../../../worker/invocation/arguments/check.ts";
import { fromAdk } from "../../../../worker/protocol/discovery/adk-schema.ts";
import {
  maxSchemaDepth,
  parametersProblem,
  schemaProblem,
} from "../../../../worker/protocol/discovery/schema-problems.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";
import { anySchema } from "./any-schema.ts";

function nested(levels: number): JsonObject {
  return levels === 0 ? {} : { not: nested(levels - 1) };
}

describe("a schema is refused", () => {
  const properties = (schema: unknown) => ({ properties: { a: schema } });

  test.each<[string, unknown, string]>([
    ["that is no map", [], ": expected a JSON Schema, which is a map"],
    ["with too many levels", nested(maxSchemaDepth), ": expected at most 40 levels"],
    [
      "with too many values",
      { enum: Array.from({ length: 2_000 }, String) },
      ": expected at most 2000 values",
    ],
    [
      "that is too long",
      { description: "x".repeat(70_000) },
      ": expected at most 65536 characters of JSON",
    ],
    ["with a number that JSON has not", { minimum: Infinity }, ": expected finite numbers"],
    [
      "with a text in place of a schema",
      properties("text"),
      "properties.a: expected a schema: a map, true or false",
    ],
    [
      "with a text in place of schemas",
      { properties: "a" },
      "properties: expected a map of schemas",
    ],
    [
      "with an unknown type",
      properties({ type: "date" }),
      "properties.a.type: expected one of string, number, integer, boolean, array, object, null, or a list of them",
    ],
    [
      "with a bound that is no number",
      properties({ minimum: "1" }),
      "properties.a.minimum: expected a number",
    ],
    [
      "with a text in place of names",
      { required: "a" },
      "required: expected a list of different names",
    ],
    [
      "with a long pattern",
      properties({ pattern: "a".repeat(1_001) }),
      "properties.a.pattern: expected a pattern of at most 1000 characters",
    ],
    [
      "that refers to the web",
      properties({ $ref: "https://example.com/s.json" }),
      'properties.a.$ref: expected a reference into this schema, such as "#/$defs/name"',
    ],
    [
      "that refers to nothing",
      properties({ $ref: "#/$defs/none" }),
      'properties.a.$ref: expected a reference into this schema, such as "#/$defs/name"',
    ],
    [
      "that refers to what is no definition",
      properties({ $ref: "#/properties/a" }),
      'properties.a.$ref: expected a reference into this schema, such as "#/$defs/name"',
    ],
    [
      "with an id of its own",
      properties({ $id: "x" }),
      "properties.a.$id: is not used by this worker",
    ],
    ["that is asynchronous", { $async: true }, "$async: is not used by this worker"],
    [
      "of another dialect",
      { $schema: "http://json-schema.org/draft-07/schema#" },
      "$schema: expected https://json-schema.org/draft/2020-12/schema",
    ],
  ])("%s", (_, schema, message) => {
    const { path, message: reason } = schemaProblem(schema) ?? { path: [], message: "" };
    expect(`${path.join(".")}: ${reason}`).toBe(message);
  });

  test("for arguments that are no map", () => {
    expect(parametersProblem({ type: "string" })?.path).toEqual(["type"]);
    expect(parametersProblem({})).toBeUndefined();
  });
});

describe("any schema that is accepted", () => {
  test("is one of some that there are", () => {
    const accepted = fc.sample(anySchema, 200).filter((it) => schemaProblem(it) === undefined);
    expect(accepted.length).toBeGreaterThan(20);
  });

  property.prop([anySchema])("can be compiled, and checks anything", (schema) => {
    if (schemaProblem(schema) !== undefined) return;
    for (const value of [null, {}, { a: 1 }, [1]]) {
      const check = { key: 1, schema, value, coerce: true, isSecret: false };
      try {
        expect(new Checks().check(check)).toHaveProperty("ok");
      } catch (error) {
        // A schema that refers to itself alone has no end; its thread has.
        expect(error).toBeInstanceOf(RangeError);
      }
    }
  });
});

describe("ADK's form of a schema", () => {
  test.each<[JsonObject, JsonObject]>([
    [{ type: "STRING" }, { type: "string" }],
    [{ type: "STRING", nullable: true }, { type: ["string", "null"] }],
    [
      { type: "STRING", enum: ["a"], nullable: true },
      { type: ["string", "null"], enum: ["a", null] },
    ],
    [
      { any_of: [{ type: "INTEGER" }], nullable: true },
      { anyOf: [{ type: "integer" }, { type: "null" }] },
    ],
    [
      { type: "ARRAY", items: { type: "NUMBER" }, min_items: 1 },
      { type: "array", items: { type: "number" }, minItems: 1 },
    ],
    [
      { type: "OBJECT", properties: { type: { type: "STRING" } } },
      { type: "object", properties: { type: { type: "string" } } },
    ],
    [
      { type: "object", required: ["a"] },
      { type: "object", required: ["a"] },
    ],
    [{ type: "string", nullable: false }, { type: "string" }],
  ])("%j is %j", (adk, schema) => {
    expect(fromAdk(adk)).toEqual(schema);
  });
});
