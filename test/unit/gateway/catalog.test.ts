/**
 * Catalogs of tools, and the documents that are derived from untrusted text.
 */
import { describe, expect } from "vitest";
import { Catalog, type CatalogEntry, maxTools } from "../../../worker/gateway/catalog.ts";
import type { ToolDoc } from "../../../worker/gateway/gateway.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { isDeceptive } from "../../../worker/support/text/deceptive.ts";
import { anyCharacter, fc, test } from "../../support/properties/property.ts";

const documentOf = (entry: Omit<CatalogEntry, "id">): ToolDoc =>
  new Catalog([{ id: "tool", ...entry }]).get("tool")!.document("full");

describe("a catalog", () => {
  test("has its tools by id, whatever their order", () => {
    const ids = ["b:x", "a", "b:a", "__proto__", "B:a"];
    const catalog = new Catalog(ids.map((id) => ({ id })));
    expect(catalog.ids).toEqual(ids.toSorted());
    expect(catalog.get("__proto__")?.summary().name).toBe("__proto__");
    expect(catalog.get("constructor")).toBeUndefined();
  });

  test.each<readonly [string, readonly CatalogEntry[]]>([
    ["is no id", [{ id: "a b" }]],
    ["twice", [{ id: "a" }, { id: "a" }]],
    ["at most 5000", Array.from({ length: maxTools + 1 }, (_, id) => ({ id: `t${id}` }))],
  ])("refuses entries: %s", (message, entries) => {
    expect(() => new Catalog(entries)).toThrow(new RegExp(message));
  });
});

describe("a document", { tags: "promise-G6" }, () => {
  test("has the first paragraph as summary, and all of it as notes", () => {
    const description = "\n Add\n  numbers. \n \n Of any size.\n";
    const { summary, notes } = documentOf({ description });
    expect(summary).toBe("Add numbers.");
    expect(notes).toContain("Of any size.");
    expect(documentOf({ description, notes: "Mine" }).notes).toBe("Mine");
    expect(documentOf({})).toMatchObject({ summary: "", notes: "", examples: [] });
  });

  test("cuts long texts between characters", () => {
    const { summary, notes } = documentOf({ description: "😀".repeat(2_000) });
    expect([summary, notes].map((text) => text!.length)).toEqual([199, 1_999]);
    expect([summary, notes].every((text) => text!.isWellFormed() && text!.endsWith("…"))).toBe(
      true,
    );
  });

  const ugly = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 3_000 }),
    fc.string({
      unit: fc.constantFrom("\u001b[2J", "\u202e", "\n", "\r", "\u2028", "a", " ", "\0"),
    }),
  );
  test.prop([ugly, fc.array(ugly)])("has clean texts within the caps", (text, tags) => {
    const example = { title: text, description: text, args: {}, resultHint: text };
    const parameters = { type: "object", properties: { a: { description: text, title: text } } };
    const document = documentOf({ description: text, tags, examples: [example], parameters });
    const { summary, notes, examples } = document;
    const shown = examples![0]!;
    const lines = [summary, shown.title!, shown.description, shown.resultHint!];
    const { properties } = document.parameters as unknown as typeof parameters;
    const texts = [notes!, properties.a.description, properties.a.title];
    const all = [...lines, ...texts.flatMap((one) => one.split("\n"))];
    expect(all.filter((one) => isDeceptive(one) || !one.isWellFormed())).toEqual([]);
    expect(lines.every((one, at) => one.length <= [200, 100, 300, 200][at]!)).toBe(true);
    expect(notes!.length).toBeLessThanOrEqual(2_000);
  });

  test("leaves what a schema requires as it is", () => {
    const parameters: JsonObject = {
      type: "object",
      properties: { a: { const: "\u001b" }, description: { pattern: "\u0000" } },
      required: ["a\n"],
    };
    expect(documentOf({ parameters }).parameters).toEqual(parameters);
  });

  test("leaves out schemas and examples that are too large", () => {
    const nested = (depth: number): JsonObject => (depth === 0 ? {} : { a: nested(depth - 1) });
    const keys = (count: number): JsonObject =>
      Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${key}`, 1]));
    const example = (args: JsonObject) => ({ description: "", args });
    const { parameters, returns, examples } = documentOf({
      parameters: nested(50),
      returns: { enum: ["x".repeat(70_000)] },
      examples: [nested(4), nested(5), keys(50), keys(51)].map(example),
    });
    expect([parameters, returns]).toEqual([undefined, undefined]);
    expect(examples!.map(({ args }) => args)).toEqual([nested(4), keys(50)]);
  });
});
