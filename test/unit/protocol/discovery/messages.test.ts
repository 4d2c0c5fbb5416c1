/**
 * What messages about tools say, and how much of it.
 */
import { describe, expect, test } from "vitest";
import {
  type PublishedDescription,
  encodeBroadcast,
  encodeDescription,
  encodeDiscoveryError,
  encodeFailed,
  maxDescriptionLength,
  maxFullSchemasLength,
  maxReducedLength,
} from "../../../../worker/protocol/discovery/messages.ts";
import { InvocationError } from "../../../../worker/protocol/errors.ts";
import { maxMessageBytes } from "../../../../worker/protocol/limits.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const nothing: PublishedDescription = {
  description: undefined,
  parameters: undefined,
  result: undefined,
  config: undefined,
  artifactParameters: new Map(),
};
const anyArguments = { type: "object", properties: {} };

function decode(payload: Uint8Array): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>;
}

/** What agents are told of a tool. */
function told(description: Partial<PublishedDescription>): unknown {
  return decode(encodeBroadcast("x", { ...nothing, ...description }))["params"];
}

describe("a broadcast", () => {
  test("has no member for what is not known", () => {
    expect(told({})).toEqual({ tool_name: "x" });
  });

  test("has as much text as is allowed, and is well-formed after a cut in a character", () => {
    const whole = "x".repeat(maxDescriptionLength);
    expect(told({ description: whole })).toMatchObject({ description: whole });
    const cut = whole.slice(1);
    expect(told({ description: `${cut}\u{1f600}` })).toMatchObject({
      description: `${cut}\ufffd`,
    });
  });

  test("leaves out full schemas that are too large together, and keeps the reduced ones", () => {
    const ofLength = (length: number): JsonObject => ({
      type: "object",
      "x-own": "x".repeat(length),
    });
    const parameters = ofLength(maxFullSchemasLength / 2);
    expect(told({ parameters })).toEqual({
      tool_name: "x",
      parameters: anyArguments,
      json_schema: { parameters },
    });
    const result = ofLength(maxFullSchemasLength / 2);
    expect(told({ parameters, result })).toEqual({ tool_name: "x", parameters: anyArguments });
  });

  test("leaves arguments open whose reduction is too large", () => {
    const text = "x".repeat(60_000);
    const choice = (count: number): JsonObject => {
      const anyOf = Array.from({ length: count }, (_, index) => ({
        type: "string",
        minLength: index,
      }));
      return { type: "object", properties: { a: { enum: [text], anyOf } } };
    };
    const count = Math.floor(maxReducedLength / text.length);
    expect(told({ parameters: choice(count - 1) })).toMatchObject({
      parameters: { properties: { a: { anyOf: { length: count - 1 } } } },
    });
    expect(told({ parameters: choice(count + 1) })).toHaveProperty("parameters", anyArguments);
  });

  test("has as many bytes as agents take", () => {
    const besides = encodeBroadcast("x", { ...nothing, instructions: "" }).byteLength;
    const instructions = "x".repeat(maxMessageBytes - besides);
    const encoded = encodeBroadcast("x", { ...nothing, instructions });
    expect(encoded.byteLength).toBe(maxMessageBytes);
    // Bytes count, not characters.
    const more = `${instructions.slice(1)}\u00e9`;
    expect(() => encodeBroadcast("x", { ...nothing, instructions: more })).toThrow(
      "The tool's description has 10000001 bytes; at most 10000000 can be sent",
    );
  });
});

describe("an answer", () => {
  test("to an early agent always has a schema, which any arguments match unless one is known", () => {
    const answer = (description: Partial<PublishedDescription>) =>
      decode(encodeDescription("1", "early", "x", { ...nothing, ...description }));
    expect(answer({ description: "d" })).toEqual({
      jsonrpc: "2.0",
      id: "1",
      result: { tool_name: "x", tool_description: "d", parameters_schema: anyArguments },
    });
    const properties = { a: { type: "string" } };
    expect(answer({ parameters: { properties } })).toMatchObject({
      result: { parameters_schema: { type: "object", properties } },
    });
  });

  test("to a newer agent has none that is not known", () => {
    expect(decode(encodeDescription("1", "newer", "x", { ...nothing, description: "d" }))).toEqual({
      jsonrpc: "2.0",
      id: "1",
      result: { tool_name: "x", description: "d" },
    });
  });
});

describe("an error", () => {
  const publicError = new InvocationError("INTERNAL_ERROR", "The worker's words");
  const options = { isToolsText: true };
  const toolsError = new InvocationError("SANDBOX_FAILED", "the tool's own: password", options);

  test.each([
    ["a notification", (error: InvocationError) => decode(encodeFailed("x", error))["params"]],
    ["an answer", (error: InvocationError) => decode(encodeDiscoveryError({ id: "1" }, error))],
  ])("has no text of the tool itself: %s", (_, encode) => {
    expect(encode(publicError)).toMatchObject({
      error: { code: "INTERNAL_ERROR", message: "The worker's words" },
    });
    expect(encode(toolsError)).toMatchObject({
      error: { code: "SANDBOX_FAILED", message: "The tool's code could not be described" },
    });
  });
});
