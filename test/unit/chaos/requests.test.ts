/**
 * Which calls a chaos says have run twice and must not.
 */
import { describe, expect, test } from "vitest";
import type { ChaosEvent } from "../../support/chaos/history.ts";
import { brokenByCall, requestsOf } from "../../support/chaos/requests.ts";
import { requestName, toolOf } from "../../support/chaos/tools.ts";

const [first, second] = [requestName(1, 1), requestName(1, 2)];

const began = (request: string, worker: string): ChaosEvent => ({
  ...{ kind: "began", request, worker },
  run: 1,
});
const answered = (request: string): ChaosEvent => ({
  ...{ kind: "answered", request, worker: "refuser" },
  isLost: false,
});
const settled = (outcome: "accepted" | "failed", isLost = false): ChaosEvent => ({
  ...{ kind: "settled", request: first, worker: "refuser" },
  outcome,
  isLost,
});
const heard = (request: string, ending: string): ChaosEvent => ({
  ...{ kind: "heard", request, ending },
  run: undefined,
});

const refusal = [answered(first), heard(first, "TOOL_NOT_AVAILABLE")];
const bothRun = [began(first, "other"), began(second, "other")];

describe("a call that must not run twice, and ran for both of its requests,", () => {
  test.for<readonly [string, readonly ChaosEvent[]]>([
    ["when the first was refused and settled", [...refusal, settled("accepted"), ...bothRun]],
    [
      "when the first was requeued, and then refused and settled",
      [settled("failed"), ...refusal, settled("accepted"), ...bothRun],
    ],
    ["when the first was not refused", [answered(first), heard(first, "success"), ...bothRun]],
  ])("breaks a promise %s", ([, events]) => {
    expect(toolOf(first)).toBe("once");
    expect(brokenByCall(requestsOf(events))).toEqual([`${second} is of a call that ran 2 times`]);
  });

  test.for<readonly [string, readonly ChaosEvent[]]>([
    ["was refused and never settled", [...refusal, ...bothRun]],
    [
      "was requeued, and then refused and never settled",
      [settled("failed"), ...refusal, ...bothRun],
    ],
    [
      "was refused, and its settlement got lost",
      [...refusal, settled("accepted", true), ...bothRun],
    ],
  ])("breaks none when the first %s", ([, events]) => {
    expect(brokenByCall(requestsOf(events))).toEqual([]);
  });
});
