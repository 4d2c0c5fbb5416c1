/**
 * The end of what a tool printed, as the debug log and the answer have it.
 */
import { describe, expect, test } from "vitest";
import { endOfOutput } from "../../../worker/invocation/steps/output-log.ts";

const report = (text: string, droppedBytes = 0) => ({
  stdout: { text, droppedBytes },
  stderr: { text: "", droppedBytes: 0 },
});

describe("the end of what a tool printed", () => {
  test("is kept for nobody unless the operator wants it", () => {
    expect(endOfOutput(report("text"), { to: "off", maxBytes: 1024 })).toBeUndefined();
  });

  test.each([
    ["text", 8, "text", 3],
    ["longer text", 4, "text", 3 + 7],
    ["äöü", 4, "öü", 3 + 2],
    ["äöü", 3, "ü", 3 + 4],
    ["😀", 3, "", 3 + 4],
  ])("of %j in %i bytes is %j", (text, maxBytes, end, droppedBytes) => {
    for (const to of ["log", "caller"] as const) {
      expect(endOfOutput(report(text, 3), { to, maxBytes })?.stdout).toEqual({
        text: end,
        droppedBytes,
      });
    }
  });
});
