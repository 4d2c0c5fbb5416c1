/**
 * The status notification on the wire.
 */
import { anyCharacter, fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { encodeStatus } from "../../../worker/protocol/messages/status.ts";

describe("a status notification", () => {
  test("is compact JSON-RPC without an id, as the design document shows it", () => {
    const atMs = Date.parse("2025-02-09T12:34:56.789Z");
    const bytes = encodeStatus("e524ecb5", "Processing row 500 of 1000… €", atMs);
    expect(Buffer.from(bytes).toString("utf8")).toBe(
      '{"jsonrpc":"2.0","method":"sam_remote_tool/status","params":{"task_id":"e524ecb5",' +
        '"status_text":"Processing row 500 of 1000… €","timestamp":"2025-02-09T12:34:56.789Z"}}',
    );
  });

  test("has the details behind the members that every agent reads", () => {
    const details = {
      progress: { done: 3, total: 10, message: "Reading" },
      log: { level: "info", text: "t", fields: { a: 1 } },
      partialResult: [1],
    } as const;
    expect(Buffer.from(encodeStatus("t1", "Reading (3 of 10)", 0, details)).toString()).toBe(
      '{"jsonrpc":"2.0","method":"sam_remote_tool/status","params":{"task_id":"t1",' +
        '"status_text":"Reading (3 of 10)","timestamp":"1970-01-01T00:00:00.000Z",' +
        '"progress":{"done":3,"total":10,"message":"Reading"},' +
        '"log":{"level":"info","text":"t","fields":{"a":1}},"partial_result":[1]}}',
    );
  });

  propertyTest.prop([
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: anyCharacter }),
    fc.integer({ min: 0, max: 4_102_444_800_000 }),
  ])("carries any text, id and time unchanged", (taskId, text, atMs) => {
    const bytes = encodeStatus(taskId, text, atMs);
    const decoded = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as {
      params: { task_id: string; status_text: string; timestamp: string };
    };
    expect(decoded.params.task_id).toBe(taskId);
    expect(decoded.params.status_text).toBe(text);
    expect(Date.parse(decoded.params.timestamp)).toBe(atMs);
  });
});
