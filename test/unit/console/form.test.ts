/** Forms of JSON Schemas: which fields they have, and which arguments a filled form gives. */
import { describe, expect, test } from "vitest";
import { fieldOf, parametersOf, type Field } from "../../../console/form/field.ts";
import type { Draft } from "../../../console/form/draft.ts";
import { pathText, readDraft, type Problem } from "../../../console/form/read-draft.ts";
import { startDraft, startItem, startVariant } from "../../../console/form/start-draft.ts";
import { inputPattern, inputType } from "../../../console/form/views/native.ts";
import { hintOf } from "../../../console/form/views/hints.ts";
import type { JsonMembers, JsonValue } from "../../../worker/console/api.ts";
import { everyKind } from "../../support/console/recorded-tools.ts";
import { fc, test as property } from "../../support/properties/property.ts";

function field(schema: JsonValue, definitions: JsonMembers = {}): Field {
  return fieldOf(schema, { $defs: definitions });
}

/** The value of a field that begins with a value, or with nothing. */
function roundTrip(schema: JsonMembers, value?: JsonValue, isRequired = true) {
  const one = fieldOf(schema, schema);
  const problems: Problem[] = [];
  const read = readDraft(one, startDraft(one, isRequired, value), isRequired, [], problems);
  return { value: read, problems };
}

function read(schema: JsonMembers, draft: Draft, isRequired = true) {
  const problems: Problem[] = [];
  const value = readDraft(fieldOf(schema, schema), draft, isRequired, ["x"], problems);
  return { value, problems: problems.map(({ message }) => message) };
}

describe("a field", () => {
  test.each<[JsonMembers, Partial<Field>]>([
    [
      { type: "string", format: "date" },
      { kind: "text", format: "date" },
    ],
    [
      { type: "integer", minimum: 1 },
      { kind: "number", isInteger: true, minimum: 1 },
    ],
    [{ type: "number" }, { kind: "number", isInteger: false }],
    [
      { type: "boolean", default: true },
      { kind: "boolean", initial: true },
    ],
    [{ const: 2 }, { kind: "choice", options: [{ value: 2, label: "2" }] }],
    [{ type: "null" }, { kind: "choice", options: [{ value: null, label: "null" }] }],
    [{ type: "object" }, { kind: "json", expects: "a JSON object" }],
    [{ type: "array" }, { kind: "json", expects: "a JSON array" }],
    [{}, { kind: "json", expects: "any JSON" }],
    [{ type: ["string", "null"] }, { kind: "text", isNullable: true }],
    [{ anyOf: [{ type: "integer" }, { type: "null" }] }, { kind: "number", isNullable: true }],
    [{ enum: ["a", null] }, { kind: "choice", isNullable: true }],
    [
      { allOf: [{ type: "string" }], title: "T" },
      { kind: "text", title: "T" },
    ],
    [{ $ref: "#/$defs/missing" }, { kind: "json" }],
    [{ $ref: "https://example.org/schema" }, { kind: "json" }],
  ])("of %j is %j", (schema, expected) => {
    expect(field(schema)).toMatchObject(expected);
  });

  test("follows references, and what stands beside them wins", () => {
    const definitions = { "a/b": { type: "string", description: "inner" } };
    expect(field({ $ref: "#/$defs/a~1b", description: "outer" }, definitions)).toMatchObject({
      kind: "text",
      description: "outer",
    });
  });

  test("is JSON where references lead in a circle without an end", () => {
    const definitions = { one: { $ref: "#/$defs/two" }, two: { $ref: "#/$defs/one" } };
    expect(field({ $ref: "#/$defs/one" }, definitions)).toMatchObject({ kind: "json" });
  });

  test("chooses between constants by their titles, and between schemas by theirs", () => {
    expect(field({ oneOf: [{ const: 1, title: "one" }, { const: 2 }] })).toMatchObject({
      kind: "choice",
      options: [
        { value: 1, label: "one" },
        { value: 2, label: "2" },
      ],
    });
    const variants = { anyOf: [{ title: "Text", type: "string" }, { type: "integer" }, {}] };
    expect(field(variants)).toMatchObject({
      kind: "variant",
      variants: [{ label: "Text" }, { label: "integer" }, { label: "variant 3" }],
    });
  });

  test("of a name that objects inherit is not found", () => {
    expect(field({ $ref: "#/constructor" })).toMatchObject({ kind: "json" });
  });
});

describe("the parameters of a tool", () => {
  test("are its properties, but for those that take files", () => {
    const schema = { type: "object", properties: { a: { type: "string" }, file: {} } };
    const names = parametersOf(schema, [{ name: "file" }])?.members.map(({ name }) => name);
    expect(names).toEqual(["a"]);
  });

  test.each<[JsonMembers]>([[{ type: "string" }], [{ anyOf: [{ type: "object" }] }]])(
    "of %j have no form",
    (schema) => expect(parametersOf(schema, [])).toBeUndefined(),
  );

  test("that have themselves inside are read no deeper than shown", () => {
    const members = parametersOf(everyKind, [])?.members ?? [];
    const tree = members.find(({ name }) => name === "tree")?.field();
    expect(tree).toMatchObject({ kind: "object" });
    expect(startDraft(tree!, false)).toEqual({ kind: "absent" });
    const endless: JsonMembers = {
      type: "object",
      required: ["self"],
      properties: { self: { $ref: "#" } },
    };
    expect(startDraft(fieldOf(endless, endless), true)).toMatchObject({ kind: "object" });
  });
});

describe("a filled form", () => {
  test("gives defaults, and leaves out what is optional and empty", () => {
    const schema: JsonMembers = {
      type: "object",
      properties: {
        a: { type: "string" },
        b: { type: "integer", default: 3 },
        c: { type: "boolean" },
        d: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
        e: { type: "array", items: {} },
      },
    };
    expect(roundTrip(schema).value).toEqual({ b: 3 });
  });

  test("says what is missing, where", () => {
    const schema: JsonMembers = {
      type: "object",
      required: ["rows"],
      properties: {
        rows: {
          type: "array",
          minItems: 2,
          items: { type: "object", required: ["n"], properties: { n: { type: "number" } } },
        },
      },
    };
    const { problems } = roundTrip(schema);
    expect(problems.map(({ path, message }) => `${pathText(path)} ${message}`)).toEqual([
      "rows[0].n is required",
      "rows[1].n is required",
    ]);
  });

  test("gives null where that is an answer and the default is none", () => {
    expect(roundTrip({ type: ["string", "null"] }).value).toBeNull();
    const withDefault: JsonMembers = { type: ["string", "null"], default: "x" };
    expect(read(withDefault, { kind: "text", text: "" }, false).value).toBeNull();
    expect(roundTrip({ type: ["string", "null"] }, undefined, false).value).toBeUndefined();
  });

  test.each<[JsonMembers, string, string]>([
    [{ type: "integer" }, "1.5", "is not a whole number"],
    [{ type: "integer" }, "9007199254740993", "is too large to be exact in a browser"],
    [{ type: "number" }, "abc", "is not a number"],
    [{ type: "number", exclusiveMinimum: 0 }, "0", "must be more than 0"],
    [{ type: "number", exclusiveMaximum: 1 }, "1", "must be less than 1"],
  ])("of %j refuses %s", (schema, text, message) => {
    expect(read(schema, { kind: "text", text }).problems).toEqual([message]);
  });

  test("refuses JSON that is none, and lists that are too long", () => {
    expect(read({}, { kind: "text", text: "{" }).problems[0]).toMatch(/^is not JSON/);
    const list: JsonMembers = { type: "array", items: { type: "string" }, maxItems: 1 };
    const item = { kind: "text", text: "a" } as const;
    const items = [0, 1].map((key) => ({ key, draft: item }));
    expect(read(list, { kind: "list", items }).problems).toEqual(["takes at most 1"]);
  });

  test("adds items and changes variants with their defaults", () => {
    const list = field({ type: "array", items: { type: "integer", default: 7 } });
    if (list.kind !== "list") throw new Error("no list");
    expect(startItem(list, 4)).toEqual({ key: 4, draft: { kind: "text", text: "7" } });
    const variant = field({ oneOf: [{ type: "string" }, { type: "number", default: 2 }] });
    if (variant.kind !== "variant") throw new Error("no variant");
    expect(startVariant(variant, 1)).toMatchObject({ index: 1, draft: { text: "2" } });
  });

  test.each<[JsonValue]>([
    [{ name: "n", count: 2, ratio: 0.5, mode: "exact", shape: { side: 3 } }],
    [
      {
        name: "n",
        count: 2,
        ratio: 0.5,
        mode: "fast",
        shape: { radius: 1 },
        version: 2,
        loud: true,
        maybe: false,
        tags: [],
        note: "x",
        options: { a: "b" },
        tree: { label: "a", children: [{ label: "b" }, { label: "c", children: [] }] },
      },
    ],
  ])("gives back the arguments of an earlier call: %j", (value) => {
    const { value: back, problems } = roundTrip(everyKind, value);
    expect(problems).toEqual([]);
    expect(back).toEqual({ loud: false, ...(value as JsonMembers) });
  });

  property.prop([fc.jsonValue()])("of any schema gives a value and does not fail", (schema) => {
    const one = fieldOf(schema as JsonValue, { $defs: schema as JsonValue });
    const value = readDraft(one, startDraft(one, true), true, [], []);
    expect(value === undefined || JSON.stringify(value) !== undefined).toBe(true);
  });

  test("keeps lists inside lists, and nulls", () => {
    const cells = { type: "array", items: { type: ["integer", "null"] } };
    const rows: JsonMembers = { type: "array", items: cells };
    expect(roundTrip(rows, [[1, null], [], [2]]).value).toEqual([[1, null], [], [2]]);
  });

  property.prop([fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string())])(
    "gives back texts, numbers, flags and lists",
    (text, number, flag, list) => {
      const schema: JsonMembers = {
        type: "object",
        properties: {
          text: { type: "string" },
          number: { type: "integer" },
          flag: { type: "boolean" },
          list: { type: "array", items: { type: ["string", "null"] } },
        },
      };
      const given = { ...(text === "" ? {} : { text }), number, flag };
      const items = list.map((item) => (item === "" ? null : item));
      expect(roundTrip(schema, { ...given, list: items }).value).toEqual({ ...given, list: items });
    },
  );
});

describe("the browser's validation", () => {
  const text = (schema: JsonMembers) => {
    const one = field({ type: "string", ...schema });
    if (one.kind !== "text") throw new Error("no text");
    return one;
  };

  test("knows the type of an input by its format", () => {
    expect(inputType(text({ format: "email" }))).toBe("email");
    expect(inputType(text({ format: "date-time" }))).toBe("text");
    expect(inputType(text({ maxLength: 20 }))).toBe("text");
    expect(inputType(text({}))).toBeUndefined();
  });

  test("does not anchor patterns, and leaves out those of other languages", () => {
    const pattern = (given: string) => new RegExp(`^(?:${inputPattern(given) ?? ""})$`, "v");
    expect(pattern("b").test("abc")).toBe(true);
    expect(pattern("^b").test("abc")).toBe(false);
    expect(pattern("a|c$").test("xc")).toBe(true);
    expect(inputPattern("(?P<name>x)")).toBeUndefined();
    expect(inputPattern("a)|(b")).toBeUndefined();
    expect(inputPattern(null)).toBeUndefined();
  });

  test("is told in words", () => {
    const number = field({ type: "integer", minimum: 1, exclusiveMaximum: 5, multipleOf: 2 });
    expect(hintOf(number)).toBe("whole number, at least 1, less than 5, a multiple of 2");
    expect(hintOf(text({ pattern: "^a", maxLength: 3 }))).toBe("matches ^a, at most 3 characters");
  });
});
