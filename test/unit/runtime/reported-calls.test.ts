/**
 * The calls of a tool's report.
 */
import { expect, test } from "vitest";
import { ReportedCalls, maxReportedCalls } from "../../../worker/runtime/reported-calls.ts";

test("a report has the first thousand calls of a tool, and how many more there were", () => {
  const calls = new ReportedCalls(1_000);
  for (let count = 0; count < maxReportedCalls + 2; count++)
    calls.add({
      ...{ callId: `call ${count}`, toolId: "a:tool", backend: "bubblewrap", depth: 1 },
      ...{ startedAtMs: 1_000 + count, durationMs: 5, outcome: "ok", op: undefined },
      ...{ argsBytes: 2, resultBytes: 7 },
    });
  const { report } = calls;
  expect(report.calls).toHaveLength(1_000);
  expect(report.omittedCalls).toBe(2);
  expect(report.calls[999]).toEqual({
    ...{ id: "call 999", tool: "a:tool", backend: "bubblewrap", depth: 1 },
    ...{ startMs: 999, durationMs: 5, outcome: "ok", op: undefined, bytes: 7 },
  });
});
