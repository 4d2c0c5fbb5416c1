/**
 * Announcements of workers.
 */
import { describe, expect, test } from "vitest";
import {
  decodeAnnouncement,
  encodeAnnouncement,
  maxAnnouncementBytes,
} from "../../../worker/protocol/messages/announcement.ts";

const worker = { instance: "1", worker: "w", group: "g", store: null, tools: ["a", "b"] };

describe("an announcement", () => {
  test("is what was announced", () => {
    expect(decodeAnnouncement(encodeAnnouncement(worker))).toEqual(worker);
  });

  test.each([
    ["no JSON", "{"],
    ["another method", JSON.stringify({ method: "sam_remote_tool/invoke", params: worker })],
    [
      "no tools",
      JSON.stringify({ method: "sam_remote_tool/worker", params: { ...worker, tools: 1 } }),
    ],
    [
      "too much",
      JSON.stringify({ method: "sam_remote_tool/worker", params: worker }).padEnd(
        maxAnnouncementBytes + 1,
      ),
    ],
  ])("is none when it is %s", (_, text) => {
    expect(decodeAnnouncement(Buffer.from(text))).toBeUndefined();
  });
});
