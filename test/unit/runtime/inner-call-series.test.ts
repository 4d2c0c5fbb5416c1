/**
 * Calls by tools are noticed as a series.
 */
import { expect, test } from "vitest";
import type { InvocationOutcome } from "../../../worker/protocol/invocation.ts";
import type { GatewayCall } from "../../../worker/invocation/steps/gateway.ts";
import { CallSeries } from "../../../worker/pool/call-series.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { type InnerCallParts, runInnerCall } from "../../../worker/runtime/run-inner-call.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { HandClock } from "../broker/hand-clock.ts";

const never = new AbortController().signal;

test.for([
  ["succeeds", { kind: "success", toolResult: {}, createdArtifacts: [] }],
  ["fails", { kind: "error", error: new InvocationError("EXECUTION_ERROR", "it broke") }],
] as const)("a call that %s is in a row from its begin, and after its end", async ([, end]) => {
  const clock = new HandClock();
  const series = new CallSeries(clock);
  const during: boolean[] = [];
  const parts = {
    invoker: {
      invoke: async () => {
        during.push(series.isUnderWay);
        clock.advance(1_000);
        return end as unknown as InvocationOutcome;
      },
    },
    ...{ series, clock, log: createLogger("silent", 1) },
    follow: () => ({ resolved: () => undefined, end: () => undefined, trace: undefined }),
  } as unknown as InnerCallParts;
  const outer = {
    ...{ tool: { name: "program" }, invocation: {}, context: { signal: never } },
    deadlineMs: 60_000,
  } as unknown as GatewayCall;
  const call = { callId: "1", toolId: "query", toolName: "query", args: {}, depth: 1 };
  await runInnerCall(parts, outer, call, never).catch(() => undefined);
  expect(during).toEqual([true]);
  expect(series.isUnderWay).toBe(true);
  clock.advance(1_000);
  expect(series.isUnderWay).toBe(false);
});
