/**
 * What a status says besides its text, as untrusted tools write it.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { encodeStatus } from "../../../worker/protocol/messages/status.ts";
import { readStatusDetails } from "../../../worker/protocol/messages/status-details.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

const read = (json: string) => readStatusDetails(JSON.parse(json) as JsonObject);

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

describe("details of a status", () => {
  test.each([
    [
      "progress",
      '{"progress":{"done":3,"total":10,"message":"Reading","more":1}}',
      { progress: { done: 3, total: 10, message: "Reading" } },
    ],
    ["progress without a total", '{"progress":{"done":0,"total":null}}', { progress: { done: 0 } }],
    [
      "a log line",
      '{"log":{"level":"warning","text":"t","fields":{"a":1,"b":null,"c":true,"d":"x"}}}',
      { log: { level: "warning", text: "t", fields: { a: 1, b: null, c: true, d: "x" } } },
    ],
    [
      "a partial result",
      '{"partial_result":{"a":[1,"b\\n"]}}',
      { partialResult: { a: [1, "b\n"] } },
    ],
    ["a partial result that is false", '{"partial_result":false}', { partialResult: false }],
    [
      "as deep as may be",
      `{"partial_result":${nested(32)}}`,
      { partialResult: JSON.parse(nested(32)) },
    ],
  ])("are read: %s", (_case, json, details) => {
    expect(read(json)).toEqual(details);
  });

  test.each([
    ["none", '{"status":"x"}'],
    ["unknown ones", '{"other":1}'],
    ["null", '{"progress":null,"log":null,"partial_result":null}'],
    ["progress that is no object", '{"progress":3}'],
    ["progress without a number", '{"progress":{"done":"3"}}'],
    ["progress below zero", '{"progress":{"done":-1}}'],
    ["progress without an end", '{"progress":{"done":1e999}}'],
    ["a total without an end", '{"progress":{"done":1,"total":1e999}}'],
    ["a message that is no text", '{"progress":{"done":1,"message":{}}}'],
    ["an unknown level", '{"log":{"level":"loud","text":"t"}}'],
    ["a log line without a text", '{"log":{"level":"info"}}'],
    ["fields that are nested", '{"log":{"level":"info","text":"t","fields":{"a":{}}}}'],
    ["fields that are a list", '{"log":{"level":"info","text":"t","fields":[1]}}'],
    ["a partial result without an end", '{"partial_result":[1e999]}'],
    ["a partial result that is too deep", `{"partial_result":${nested(33)}}`],
    ["half a character", '{"partial_result":{"a\\ud800":1}}'],
  ])("are dropped: %s", (_case, json) => {
    expect(read(json)).toBeUndefined();
  });

  test("that are valid stay beside an invalid one", () => {
    expect(read('{"progress":{"done":1},"log":{}}')).toEqual({ progress: { done: 1 } });
  });

  test("have no deceptive characters in their texts", () => {
    const text = "a\\u0000\\u202eb\\ud800";
    const details = read(
      `{"progress":{"done":1,"message":"${text}"},` +
        `"log":{"level":"info","text":"${text}","fields":{"${text}":"${text}","__proto__":1}}}`,
    );
    expect(JSON.stringify(details)).toBe(
      '{"progress":{"done":1,"message":"a  b\ufffd"},' +
        '"log":{"level":"info","text":"a  b\ufffd","fields":{"a  b\ufffd":"a  b\ufffd","__proto__":1}}}',
    );
  });
});

describe("a notification with details", () => {
  propertyTest.prop([fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), fc.jsonValue()])(
    "keeps its own members, whatever a tool writes",
    (others, value, other) => {
      const line = { ...others, progress: value, log: other, partial_result: value } as JsonObject;
      const details = readStatusDetails(line);
      const { params, ...frame } = JSON.parse(
        Buffer.from(encodeStatus("task", "words", 0, details)).toString(),
      ) as { params: object };
      expect(frame).toEqual({ jsonrpc: "2.0", method: "sam_remote_tool/status" });
      expect(params).toMatchObject({ task_id: "task", status_text: "words" });
      const known = ["task_id", "status_text", "timestamp", "progress", "log", "partial_result"];
      expect(known).toEqual(expect.arrayContaining(Object.keys(params)));
    },
  );
});
