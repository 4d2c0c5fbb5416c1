/**
 * What calls are held to: schemas of the code refuse nothing that a tool may take.
 */
import { describe, expect, test } from "vitest";
import { forCalls } from "../../../worker/discovery/loosened.ts";
import { Checks } from "../../../worker/invocation/arguments/check.ts";
import type { PublishedDescription } from "../../../worker/protocol/discovery/messages.ts";
import type { Json, JsonObject } from "../../../worker/support/json/json.ts";

const text = { type: "string" };
const files = { type: "array", items: text };
const parameters: JsonObject = {
  type: "object",
  properties: {
    city: { ...text, pattern: "^[A-Z]" },
    days: { type: "integer", multipleOf: 2, minimum: 1 },
    unit: { enum: ["C", "F"] },
    spot: { $ref: "#/$defs/Spot" },
    tags: { ...files, uniqueItems: true },
    maps: files,
    secret: { ...text, format: "password", maxLength: 1 },
  },
  required: ["city", "maps"],
  additionalProperties: false,
  $defs: { Spot: { type: "object", properties: { name: { ...text, pattern: "^x" } } } },
};
const description: PublishedDescription = {
  description: "d",
  parameters,
  result: undefined,
  config: { type: "object", required: ["key"] },
  artifactParameters: new Map([
    ["maps", { isList: true, isOptional: true }],
    ["pen", { isList: false, isOptional: true }],
    ["ink", { isList: false, isOptional: false }],
  ]),
};
const derived = forCalls({ described: {} }, description);
const checks = new Checks();

function problem(args: Json): string | undefined {
  const schema = derived.parameters ?? {};
  const value = { city: "oslo", maps: "a.png", ...(args as JsonObject) };
  const answer = checks.check({ key: 1, schema, value, coerce: false, isSecret: false });
  return answer.ok ? undefined : `${answer.mismatch.path}: ${answer.mismatch.message}`;
}

describe("a schema of the code", () => {
  test.each<[string, JsonObject]>([
    ["another pattern, and one filename for a list of artifacts", {}],
    ["null for all that is optional", { days: null, unit: null, spot: null, tags: null }],
    ["no multiple", { days: 3 }],
    ["a value twice", { tags: ["a", "a"] }],
    ["another pattern deep inside", { spot: { name: "y" } }],
  ])("refuses no call with %s", (_, args) => {
    expect(problem(args)).toBeUndefined();
  });

  test.each<[JsonObject, string]>([
    [{ city: null }, ".city: expected text, found nothing"],
    [{ days: 0 }, ".days: expected a number of at least 1, found 0"],
    [{ days: "x" }, '.days: expected a whole number or nothing, found "x"'],
    [{ unit: "K" }, '.unit: expected one of "C", "F" or nothing, found "K"'],
    [{ spot: { name: 1 } }, ".spot.name: expected text, found 1"],
    [{ secret: "geheim" }, ".secret: expected text of at most 1 characters, found text"],
    [{ more: 1 }, ".more: unknown; expected are"],
  ])("refuses %j", (args, message) => {
    expect(problem(args)).toContain(message);
  });

  test("of the configuration is not checked", () => {
    expect(derived.config).toBeUndefined();
  });

  test("lets a text through for an optional artifact that is no list", () => {
    const lenient = [...derived.artifactParameters].filter(([, { mayBeText }]) => mayBeText);
    expect(lenient.map(([name]) => name)).toEqual(["pen"]);
  });
});

test("the manifest's parts stand as they are", () => {
  const { config, artifactParameters } = description;
  const given = forCalls({ described: { parameters, config, artifactParameters } }, description);
  expect(given).toEqual({ parameters, config, artifactParameters });
});
