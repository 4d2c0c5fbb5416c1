/**
 * Arguments against schemas: what is converted, and what a mismatch says.
 */
import { describe, expect, test } from "vitest";
import { Checks } from "../../../../worker/invocation/arguments/check.ts";
import { schemaProblem } from "../../../../worker/protocol/discovery/schema-problems.ts";
import { coerce } from "../../../../worker/invocation/arguments/coerce.ts";
import type { Json, JsonObject } from "../../../../worker/support/json/json.ts";

const text = { type: "string" };
const whole = { type: "integer" };
const none = { type: "null" };
const list = { type: "array", items: whole };
const map = { type: "object", properties: { n: whole } };

function args(properties: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: "object", properties, ...more };
}

describe("a value", () => {
  test.each<[Json, JsonObject, Json]>([
    ["5", whole, 5],
    [" -5 ", whole, -5],
    ["5.5", whole, "5.5"],
    ["9007199254740993", whole, "9007199254740993"],
    ["0x10", whole, "0x10"],
    ["", whole, ""],
    ["5.5", { type: "number" }, 5.5],
    ["1e3", { type: "number" }, 1000],
    ["NaN", { type: "number" }, "NaN"],
    ["true", { type: "boolean" }, true],
    ["False", { type: "boolean" }, false],
    ["yes", { type: "boolean" }, "yes"],
    [1, { type: "boolean" }, 1],
    [5, text, 5],
    ["[1, 2]", list, [1, 2]],
    ['["1"]', list, [1]],
    ["1", list, [1]],
    [1, list, [1]],
    [null, list, null],
    ['{"n": "1"}', map, { n: 1 }],
    ["{n: 1}", map, "{n: 1}"],
    ["5", { type: ["string", "integer"] }, "5"],
    ["5", { type: ["integer", "null"] }, 5],
    ["5", { anyOf: [whole, none] }, 5],
    ["5", { anyOf: [whole, text] }, "5"],
    [{ n: "1" }, { anyOf: [none, map] }, { n: 1 }],
    ["5", { allOf: [whole] }, 5],
    ["5", { $ref: "#/$defs/W", $defs: { W: whole } }, 5],
    [["1", "a"], { type: "array", prefixItems: [whole, text] }, [1, "a"]],
    [{ a: "1" }, { type: "object", additionalProperties: whole }, { a: 1 }],
    ["5", {}, "5"],
  ])("%j becomes of %j: %j", (value, schema, converted) => {
    expect(coerce(value, schema, true)).toEqual(converted);
  });

  test("is the same where nothing is to be converted", () => {
    const value = { l: [1, { n: 1 }] };
    expect(coerce(value, args({ l: { type: "array", items: map } }), true)).toBe(value);
  });

  test("is converted only where its schema says so", () => {
    const schema = args({ a: { ...whole, "x-coerce": true }, b: whole });
    expect(coerce({ a: "1", b: "1" }, schema, false)).toEqual({ a: 1, b: "1" });
  });

  test("keeps a name that means something to JavaScript", () => {
    const value = JSON.parse('{"__proto__": "1", "n": "1"}') as JsonObject;
    expect(JSON.stringify(coerce(value, map, true))).toBe('{"__proto__":"1","n":1}');
  });

  test("ends where a schema refers to itself", () => {
    expect(coerce("5", { $ref: "#" }, true)).toBe("5");
  });
});

describe("a mismatch", () => {
  const checks = new Checks();
  let key = 0;

  function mismatch(schema: JsonObject, value: Json, isSecret = false): string | undefined {
    const answer = checks.check({ key: key++, schema, value, coerce: false, isSecret });
    return answer.ok ? undefined : `${answer.mismatch.path}: ${answer.mismatch.message}`;
  }

  test.each<[JsonObject, Json, string]>([
    [args({ n: whole }), { n: "5" }, '.n: expected a whole number, found "5"'],
    [args({ n: whole }), { n: 1.5 }, ".n: expected a whole number, found 1.5"],
    [args({ n: whole }), { n: null }, ".n: expected a whole number, found nothing"],
    [args({ n: whole }), { n: [] }, ".n: expected a whole number, found a list"],
    [args({}, { required: ["toString"] }), {}, ".toString: missing, expected a value"],
    [args({ n: whole }, { required: ["n"] }), {}, ".n: missing, expected a whole number"],
    [
      args({ n: whole }, { additionalProperties: false }),
      { m: 1 },
      '.m: unknown; expected are "n"',
    ],
    [args({}, { additionalProperties: false }), { m: 1 }, ".m: unknown; none is expected"],
    [args({ n: { enum: ["a", 1] } }), { n: 2 }, '.n: expected one of "a", 1, found 2'],
    [args({ n: { const: "a" } }), { n: 2 }, '.n: expected "a", found 2'],
    [
      args({ n: { ...whole, minimum: 1 } }),
      { n: 0 },
      ".n: expected a number of at least 1, found 0",
    ],
    [
      args({ n: { ...text, minLength: 2 } }),
      { n: "a" },
      '.n: expected text of at least 2 characters, found "a"',
    ],
    [
      args({ n: { ...text, pattern: "^b" } }),
      { n: "a" },
      '.n: expected text that matches ^b, found "a"',
    ],
    [
      args({ n: { ...list, maxItems: 1 } }),
      { n: [1, 2] },
      ".n: expected a list of at most 1 values, found a list",
    ],
    [args({ n: list }), { n: [1, "a"] }, '.n[1]: expected a whole number, found "a"'],
    [
      args({ n: { anyOf: [whole, none] } }),
      { n: "a" },
      '.n: expected a whole number or nothing, found "a"',
    ],
    [
      args({ n: { anyOf: [none, map] } }),
      { n: { n: "a" } },
      '.n.n: expected a whole number, found "a"',
    ],
    [args({ "a b": whole }), { "a b": "x" }, '["a b"]: expected a whole number, found "x"'],
    [
      args({ n: { not: whole } }),
      { n: 1 },
      '.n: expected a value that keeps "not" of the schema, found 1',
    ],
  ])("of %j and %j says %s", (schema, value, message) => {
    expect(mismatch(schema, value)).toBe(message);
  });

  test.each<[string, JsonObject, Json]>([
    [
      "has the format password",
      args({ n: { ...text, format: "password", minLength: 20 } }),
      { n: "geheim" },
    ],
    ["is writeOnly", args({ n: { ...whole, writeOnly: true } }), { n: "geheim" }],
    [
      "lies inside of one that is",
      args({ o: { ...args({ n: whole }), writeOnly: true } }),
      { o: { n: "geheim" } },
    ],
    [
      "is so by a reference",
      args(
        { n: { $ref: "#/$defs/P" } },
        { $defs: { P: { ...text, format: "password", maxLength: 1 } } },
      ),
      { n: "geheim" },
    ],
    [
      "is so by an alternative",
      args({ n: { anyOf: [{ ...text, format: "password", maxLength: 1 }, none] } }),
      { n: "geheim" },
    ],
    [
      "lies in a list of such",
      args({ l: { type: "array", items: { ...text, writeOnly: true, maxLength: 1 } } }),
      { l: ["geheim"] },
    ],
    [
      "is so by a pattern of its name",
      args({}, { patternProperties: { "^n": args({ a: whole }, { writeOnly: true }) } }),
      { n: { a: "geheim" } },
    ],
    [
      "is so by unevaluatedProperties",
      args({}, { unevaluatedProperties: args({ n: { ...whole, writeOnly: true } }) }),
      { o: { n: "geheim" } },
    ],
    [
      "is so while another one is there",
      args({ n: whole }, { dependentSchemas: { m: args({ n: { format: "password" } }) } }),
      { m: 1, n: "geheim" },
    ],
  ])("has no value that %s", (_, schema, value) => {
    expect(mismatch(schema, value)).toContain("found text");
    expect(mismatch(schema, value)).not.toContain("geheim");
  });

  test("has no value at all of a configuration", () => {
    expect(mismatch(args({ n: whole }), { n: "geheim" }, true)).toBe(
      ".n: expected a whole number, found text",
    );
  });

  test.each<[JsonObject, Json]>([
    [args({ n: { ...text, pattern: "(?P<a>x)" } }), { n: "not checked: Python's pattern" }],
    [args({ n: { ...text, format: "date" } }), { n: "not checked: a note" }],
    [args({ n: { ...text, "x-own": 1, example: 2 } }), { n: "unknown keywords" }],
    [{ $defs: { N: args({ n: { $ref: "#/$defs/N" } }) }, $ref: "#/$defs/N" }, { n: { n: {} } }],
  ])("is none of %j and %j", (schema, value) => {
    expect(mismatch(schema, value)).toBeUndefined();
  });
});

describe("code in a schema", () => {
  const code = '"+(globalThis.pwned=true)+"';
  const quotes = "`${globalThis.pwned=true}`'\"\u2028\\";

  test.each<[string, JsonObject, Json]>([
    [
      "a name of a property",
      { properties: { [code]: { type: "integer" }, [quotes]: false } },
      { [code]: "x" },
    ],
    ["a required name", { type: "object", required: [code, quotes] }, {}],
    ["a pattern", { type: "string", pattern: `^${quotes.replaceAll(/[`${}\\]/g, ".")}$` }, "x"],
    [
      "a name of a definition",
      { $defs: { [code.replaceAll("/", "")]: {} }, enum: [code, quotes] },
      "x",
    ],
    ["a value", { const: code }, "x"],
    ["a dependency", { type: "object", dependentRequired: { a: [code, quotes] } }, { a: 1 }],
  ])("runs nowhere from %s", { tags: "promise-R13" }, (_, schema, value) => {
    expect(schemaProblem(schema)).toBeUndefined();
    const check = { key: 1, schema, value, coerce: true, isSecret: false };
    expect(new Checks().check(check)).toMatchObject({ ok: false });
    expect(globalThis).not.toHaveProperty("pwned");
  });
});
