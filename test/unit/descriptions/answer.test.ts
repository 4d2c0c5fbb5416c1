/**
 * The worker takes nothing of a description on trust.
 */
import { fc, test as property } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  maxArtifactParameters,
  maxDescriptionBytes,
  maxDescriptionDepth,
  maxTextLength,
  readDescription,
  writeDescription,
} from "../../../worker/descriptions/answer.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

const nothing = {
  description: undefined,
  parameters: undefined,
  result: undefined,
  config: undefined,
  artifactParameters: new Map(),
};

/** A schema of this many levels, which take two of the JSON each. */
function nested(levels: number): JsonObject {
  return levels === 0 ? {} : { type: "object", properties: { a: nested(levels - 1) } };
}

describe("what a runner says of a tool", () => {
  test("is taken as it is", () => {
    const answer = {
      description: "Finds things.",
      parameters: { type: "object", properties: { a: {}, files: {} } },
      result: { anyOf: [{ type: "object" }] },
      config: { type: "object" },
      artifact_parameters: {
        files: { is_list: true, is_optional: false },
        file: { is_list: false, is_optional: true },
      },
    };
    const described = readDescription(answer);
    expect(described).toEqual({
      description: "Finds things.",
      parameters: answer.parameters,
      result: answer.result,
      config: answer.config,
      artifactParameters: new Map([
        ["files", { isList: true, isOptional: false }],
        ["file", { isList: false, isOptional: true }],
      ]),
    });
    expect(writeDescription(described)).toEqual(answer);
  });

  test.each([
    [{}],
    [{ description: 5, parameters: [], result: "x", config: null, artifact_parameters: [] }],
    [{ description: " ", parameters: { type: "array" }, result: { type: ["object"] } }],
    [{ artifact_parameters: { a: 1 } }],
  ])("is left out where it is unusable: %j", (answer) => {
    expect(readDescription(answer as JsonObject)).toEqual(nothing);
  });

  test("has a bounded and well-formed text", () => {
    const { description } = readDescription({ description: `\ud800${"x".repeat(5_000)}` });
    expect(description).toBe(`\ufffd${"x".repeat(maxTextLength - 2)}…`);
  });

  test.each([
    ["bytes", { parameters: { description: "x".repeat(maxDescriptionBytes) } }],
    ["levels", { parameters: nested(maxDescriptionDepth / 2) }],
    ["values", { parameters: { enum: Array.from({ length: 10_000 }, (_, index) => index) } }],
  ] as const)("has a bounded number of %s", (_, answer) => {
    expect(() => readDescription(answer)).toThrow(/^The tool's description (?:has|is) /);
  });

  test("has as many artifact parameters as a tool may have", () => {
    const names = Array.from({ length: maxArtifactParameters + 1 }, (_, index) => `p${index}`);
    const artifacts = Object.fromEntries(names.map((name) => [name, {}]));
    const { artifactParameters } = readDescription({ artifact_parameters: artifacts });
    expect([...artifactParameters.keys()]).toEqual(names.slice(0, maxArtifactParameters));
  });

  test("may have as many levels as are allowed", () => {
    const parameters = nested(maxDescriptionDepth / 2 - 1);
    expect(readDescription({ parameters }).parameters).toEqual(parameters);
  });

  const answers = fc.dictionary(
    fc.constantFrom("description", "parameters", "result", "config", "artifact_parameters"),
    fc.jsonValue({ maxDepth: 4 }),
  );
  property.prop([answers])("is kept as it is read", (answer) => {
    const described = readDescription(answer as JsonObject);
    expect(readDescription(writeDescription(described))).toEqual(described);
  });
});
