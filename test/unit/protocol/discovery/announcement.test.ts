/**
 * What other workers say of their tools.
 */
import { describe, expect, test } from "vitest";
import {
  readBroadcast,
  readDescription,
} from "../../../../worker/protocol/discovery/announcement.ts";
import {
  encodeBroadcast,
  encodeDescription,
} from "../../../../worker/protocol/discovery/messages.ts";
import { maxSchemaDepth } from "../../../../worker/protocol/discovery/schema-problems.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const parameters = { type: "object", properties: { city: { type: "string", pattern: "^[A-Z]" } } };
const described = {
  description: "Weather",
  instructions: "Ask for one city",
  parameters,
  result: { type: "object" },
  config: undefined,
  artifactParameters: new Map([["map", { isList: true, isOptional: true }]]),
  allowedCallers: new Set(["direct", "programmatic"]),
};
const { config: _, ...announced } = described;

function decoded(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}

describe("an announcement", () => {
  test("of a worker like this one comes back whole", () => {
    expect(readBroadcast(decoded(encodeBroadcast("weather", described)))).toEqual(announced);
    const answer = decoded(encodeDescription("1", "newer", "weather", described));
    expect(readDescription(answer)).toEqual(announced);
  });

  test("of another make has the members that it has", () => {
    const params = {
      tool_name: "weather",
      description: "Weather",
      parameters: { type: "OBJECT", properties: { city: { type: "STRING", nullable: true } } },
      unheard_of: 1,
    };
    expect(readBroadcast({ jsonrpc: "2.0", method: "sam_remote_tool/init", params })).toEqual({
      description: "Weather",
      instructions: undefined,
      parameters: { type: "object", properties: { city: { type: ["string", "null"] } } },
      result: undefined,
      artifactParameters: new Map(),
      allowedCallers: undefined,
    });
  });

  test.each<[string, unknown]>([
    ["a request of an early agent", { id: "1", method: "sam_remote_tool/init", params: {} }],
    ["another notification", { method: "sam_remote_tool/removed", params: {} }],
    ["no object", ["sam_remote_tool/init"]],
  ])("is not %s", (_what, document) => {
    expect(readBroadcast(document)).toBeUndefined();
  });

  test("is not an error that answers a request", () => {
    expect(readDescription({ id: "1", error: { code: "INIT_ERROR", message: "no" } })).toBe(
      undefined,
    );
  });

  test("has no members of other types, and no schema that is too large to be looked at", () => {
    let deep: JsonObject = {};
    for (let level = 0; level <= maxSchemaDepth; level++) deep = { items: deep };
    const result = {
      description: 7,
      parameters: deep,
      artifact_params: { map: "yes", picture: { is_list: "no" } },
      allowed_callers: "programmatic",
      json_schema: [],
    };
    expect(readDescription({ result })).toEqual({
      description: undefined,
      instructions: undefined,
      parameters: undefined,
      result: undefined,
      artifactParameters: new Map([["picture", { isList: false, isOptional: false }]]),
      allowedCallers: undefined,
    });
  });
});
