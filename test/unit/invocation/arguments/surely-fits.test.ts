/**
 * Values that are accepted without a thread: those only that the thread accepts as they are.
 */
import { describe, expect, vi } from "vitest";
import { Checks } from "../../../../worker/invocation/arguments/check.ts";
import { maxLooks, surelyFits } from "../../../../worker/invocation/arguments/surely-fits.ts";
import { schemaProblem } from "../../../../worker/protocol/discovery/schema-problems.ts";
import type { Json, JsonObject } from "../../../../worker/support/json/json.ts";
import { fc, test } from "../../../support/properties/property.ts";

const promise = { tags: "promise-R13" };
const text = { type: "string" };
const whole = { type: "integer" };
const none = { type: "null" };

function args(properties: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: "object", properties, ...more };
}

test.each<[Json, JsonObject]>([
  [{}, args({})],
  [{ n: 1, t: "a" }, args({ n: whole, t: text }, { required: ["n"] })],
  [{ n: null }, args({ n: { anyOf: [whole, none], default: null, title: "N" } })],
  [{ n: 1 }, args({ n: { oneOf: [whole, none] } }, { additionalProperties: false })],
  [{ l: [1, 2] }, args({ l: { type: "array", items: whole, minItems: 1, maxItems: 2 } })],
  [{ m: { a: 1 } }, args({ m: { type: "object", additionalProperties: whole } })],
  [{ e: "a" }, args({ e: { enum: ["a", 1] } })],
  [{ c: null }, args({ c: { const: null } })],
  [{ n: 5 }, args({ n: { ...whole, minimum: 5, exclusiveMaximum: 6 } })],
  [{ t: "\u{1F600}" }, args({ t: { ...text, minLength: 1, maxLength: 1 } })],
  [{ p: { x: 1 } }, args({ p: { $ref: "#/$defs/P" } }, { $defs: { P: args({ x: whole }) } })],
  [{ any: [{}] }, args({ any: true })],
  ["a".repeat(maxLooks + 1), { ...text, maxLength: maxLooks + 1 }],
  [{ n: null }, args({ n: { anyOf: [{ $ref: "#" }, none] } })],
])("%j surely fits %j", (value, schema) => {
  expect(surelyFits(value, schema)).toBe(true);
});

test.each<[Json, JsonObject]>([
  [{ n: "1" }, args({ n: whole })],
  [{}, args({}, { required: ["toString"] })],
  [{ m: 1 }, args({}, { additionalProperties: false })],
  ["a", { ...text, pattern: "" }],
  [[1, 2], { type: "array", uniqueItems: true }],
  [{ a: 1 }, { patternProperties: { a: whole } }],
  [{ a: 1 }, { not: text }],
  ["5", { anyOf: [whole, {}] }],
  [1, { oneOf: [whole, { type: "number" }] }],
  [1, { oneOf: [whole, {}] }],
  [{ n: 0 }, args({ n: { minimum: 1 } })],
  [{ n: 2 }, args({ n: { maximum: 1 } })],
  [{ n: 1 }, args({ n: { exclusiveMinimum: 1 } })],
  [{ n: 1 }, args({ n: { exclusiveMaximum: 1 } })],
  ["\u{1F600}", { minLength: 2 }],
  ["ab", { maxLength: 1 }],
  [[], { minItems: 1 }],
  [[1, 2], { maxItems: 1 }],
  [Number.POSITIVE_INFINITY, { type: "number" }],
  [[], { enum: [[]] }],
  [1, { anyOf: [] }],
  [JSON.parse('{"__proto__": 1}') as Json, { properties: {} }],
])("of %j and %j nothing is sure", (value, schema) => {
  expect(surelyFits(value, schema)).toBe(false);
});

describe("what surely fits", () => {
  const name = fc.constantFrom("a", "b", "toString");
  const leaf = fc.oneof(
    fc.constantFrom(null, true, false, "", "5", "ab", "true", "\u{1F600}"),
    fc.integer({ min: -2, max: 7 }),
    fc.constantFrom(0.5, -0, 1e300),
  );
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(name, tie("value"), { maxKeys: 3, noNullPrototype: true }),
    ),
  }));
  const typeName = fc.constantFrom(
    ...["string", "number", "integer", "boolean", "array", "object", "null"],
  );
  const bound = fc.nat(3);
  const { schema } = fc.letrec<{ schema: Json; list: Json[] }>((tie) => ({
    list: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.boolean(),
      fc.record({ type: fc.oneof(typeName, fc.uniqueArray(typeName, { minLength: 1 })) }),
      fc.record(
        {
          type: typeName,
          enum: fc.array(value, { minLength: 1, maxLength: 3 }),
          const: value,
          properties: fc.dictionary(name, tie("schema"), { maxKeys: 3, noNullPrototype: true }),
          additionalProperties: tie("schema"),
          items: tie("schema"),
          required: fc.uniqueArray(name, { maxLength: 2 }),
          anyOf: tie("list"),
          oneOf: tie("list"),
          allOf: tie("list"),
          $ref: fc.constantFrom("#", "#/$defs/d"),
          minLength: bound,
          maxLength: bound,
          minItems: bound,
          maxItems: bound,
          minimum: bound,
          maximum: bound,
          exclusiveMinimum: bound,
          exclusiveMaximum: bound,
          "x-coerce": fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    ),
  }));
  const checks = new Checks();
  let key = 0;
  let accepted = 0;

  test.prop([value, schema, schema, fc.boolean()], { numRuns: 400 })(
    "is accepted by the thread, and converted by nobody",
    (candidate, given, definition, coerce) => {
      const root = { allOf: [given], $defs: { d: definition } };
      if (schemaProblem(root) !== undefined || !surelyFits(candidate, root)) return;
      accepted++;
      const request = { key: key++, schema: root, value: candidate, coerce, isSecret: false };
      expect(checks.check(request)).toEqual({ ok: true });
    },
  );

  test("was anything in these values", () => {
    expect(accepted).toBeGreaterThan(20);
  });
});

describe("no look takes long", () => {
  const levels = Array.from({ length: 30 }, (_, level) => {
    const next = { $ref: `#/$defs/n${level + 1}` };
    return [`n${level}`, { allOf: [next, next] }] as const;
  });

  test.each<[string, Json, JsonObject]>([
    ["of a schema that is itself", 1, { $ref: "#" }],
    [
      "of schemas of schemas",
      1,
      { $defs: { ...Object.fromEntries(levels), n30: whole }, $ref: "#/$defs/n0" },
    ],
    ["of a long text", "a".repeat(maxLooks + 1), { ...text, minLength: 1 }],
    ["of many values", Array(maxLooks + 1).fill(1), { items: whole }],
    ["of many names", Object.fromEntries(Array(maxLooks + 1).entries()), { properties: {} }],
    [
      "of many required names",
      Array(200).fill(Object.fromEntries(Array(100).entries())),
      { items: { required: Array.from({ length: 100 }, (_, index) => String(index)) } },
    ],
    [
      "of references with long names",
      Array(4_000).fill(0),
      { items: { $ref: `#/$defs/${"~1".repeat(15_000)}` }, $defs: { ["/".repeat(15_000)]: whole } },
    ],
    ["of many choices", Array(200).fill(1), { items: { anyOf: Array(100).fill(whole) } }],
    ["of many constants", Array(200).fill(1), { items: { enum: Array(100).fill(1) } }],
  ])("%s", promise, (_, value, schema) => {
    const decoded = vi.spyOn(globalThis, "decodeURIComponent");
    expect(surelyFits(value, schema)).toBe(false);
    const characters = decoded.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    // A name is decoded twice.
    expect(characters).toBeLessThanOrEqual(2 * maxLooks);
    decoded.mockRestore();
  });

  test("of one reference for many values", () => {
    const decoded = vi.spyOn(globalThis, "decodeURIComponent");
    const schema = { items: { $ref: "#/$defs/W" }, $defs: { W: whole } };
    expect(surelyFits(Array(1_000).fill(1), schema)).toBe(true);
    const { length } = decoded.mock.calls;
    expect(surelyFits(Array(2).fill(1), schema)).toBe(true);
    expect(decoded.mock.calls).toHaveLength(2 * length);
    decoded.mockRestore();
  });
});
