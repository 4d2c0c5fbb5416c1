/**
 * Messages of a sandbox are read strictly, with a schema or without.
 */
import { describe, expect, test } from "vitest";
import { readProgramMessage } from "../../../../worker/gateway/proxy/messages.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const call = {
  type: "run_tool",
  id: "7",
  payload: { id: "sales:query", args: { region: "West" } },
};
const { payload } = call;

/** As it comes out of a line: with members of any name. */
const asRead = (frame: object): JsonObject => JSON.parse(JSON.stringify(frame)) as JsonObject;

describe("a call", () => {
  test.for([
    ["with arguments", call],
    ["without", { ...call, payload: { ...payload, args: {} } }],
    ["with the longest id", { ...call, id: "x".repeat(64) }],
  ])("%s is read as it is", ([, frame]) => {
    expect(readProgramMessage(asRead(frame as object))).toEqual(frame);
  });

  test.for<[string, object]>([
    ["an empty id", { ...call, id: "" }],
    ["an id that is too long", { ...call, id: "x".repeat(65) }],
    ["an id that is a number", { ...call, id: 7 }],
    ["no id", { ...call, id: undefined }],
    ["another member", { ...call, user_id: "eve" }],
    [
      "a member __proto__",
      JSON.parse(`{"__proto__": 1, ${JSON.stringify(call).slice(1)}`) as object,
    ],
    ["a payload that is a list", { ...call, payload: [] }],
    ["no payload", { ...call, payload: undefined }],
    ["another member of the payload", { ...call, payload: { ...payload, user_id: "eve" } }],
    ["a tool that is a number", { ...call, payload: { ...payload, id: 7 } }],
    ["no tool", { ...call, payload: { args: {} } }],
    ["arguments that are a list", { ...call, payload: { ...payload, args: [] } }],
    ["arguments that are null", { ...call, payload: { ...payload, args: null } }],
    ["no arguments", { ...call, payload: { id: "sales:query" } }],
  ])("with %s is a violation", ([, frame]) => {
    expect(() => readProgramMessage(asRead(frame))).toThrow(
      expect.objectContaining({ reason: "invalid_message" }),
    );
  });
});
