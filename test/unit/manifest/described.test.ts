/**
 * The fields of a manifest that describe a tool.
 */
import { describe, expect, test } from "vitest";
import { ManifestError } from "../../../worker/manifest/manifest.ts";
import { parse } from "./fixtures.ts";

function textWith(fields: string): string {
  return `version: 1\ntools:\n  x:\n    module: m\n    function: f\n    ${fields}\n`;
}

function entryWith(fields: string) {
  return parse(textWith(fields)).manifest.tools.get("x");
}

describe("a description in the manifest", () => {
  test.each<[string, object]>([
    ["", { described: {}, argumentRules: { validate: true, coerce: false } }],
    ["parameters: ", { described: {} }],
    ["instructions: i", { described: { instructions: "i" } }],
    [
      "{coerce: true, validate: false}".slice(1, -1).replace(", ", "\n    "),
      { argumentRules: { validate: false, coerce: true } },
    ],
    [
      "parameters: {type: OBJECT, properties: {a: {type: STRING}}}",
      { described: { parameters: { type: "object", properties: { a: { type: "string" } } } } },
    ],
    ["output_schema: {required: [a]}", { described: { result: { required: ["a"] } } }],
    ["config_schema: {type: object}", { described: { config: { type: "object" } } }],
    ["config_schema: [{key: unit}]", { described: { configFields: [{ key: "unit" }] } }],
    [
      "artifact_params: {a: , b: {is_list: true, filename_key: c}}",
      {
        described: {
          artifactParameters: new Map([
            ["a", { isList: false, isOptional: false }],
            ["b", { isList: true, isOptional: false }],
          ]),
        },
      },
    ],
  ])("%s", (fields, entry) => {
    expect(entryWith(fields)).toMatchObject(entry);
  });

  test.each<[string, string]>([
    ["parameters: text", '6:17: parameters: expected a JSON Schema, which is a map, found "text"'],
    ["parameters: {type: array}", '6:24: parameters.type: expected "object": arguments are a map'],
    [
      "parameters: {properties: {a: {type: date}}}",
      "6:41: parameters.properties.a.type: expected one of string, number, integer, boolean, array, object, null, or a list of them",
    ],
    [
      "parameters: {properties: {a: {pattern: '('}}}",
      '6:44: parameters.properties.a.pattern: "(" is no regular expression of JavaScript',
    ],
    [
      "output_schema: {$ref: other.json}",
      '6:27: output_schema."$ref": expected a reference into this schema, such as "#/$defs/name"',
    ],
    [
      "config_schema: 5",
      "6:20: config_schema: expected a JSON Schema, or a list of at most 1000 settings, found 5",
    ],
    [
      "artifact_params: [a]",
      "6:5: artifact_params: expected a map of at most 100 parameters, found a list",
    ],
    ["coerce: 1", "6:13: coerce: expected true or false, found 1"],
  ])("that is wrong has its place: %s", (fields, problem) => {
    expect(() => parse(textWith(fields))).toThrow(ManifestError);
    expect(() => parse(textWith(fields))).toThrow(
      `m.yaml:${problem.replace(": ", ': tool "x": ')}`,
    );
  });
});
