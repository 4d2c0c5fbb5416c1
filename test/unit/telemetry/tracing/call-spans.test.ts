/**
 * Spans of calls that are followed, without a worker.
 */
import { describe, expect, test } from "vitest";
import { type ReceivedCall, followAll } from "../../../../worker/telemetry/call-follower.ts";
import { CallCounts } from "../../../../worker/telemetry/metrics/call-counts.ts";
import { CallSpans } from "../../../../worker/telemetry/tracing/call-spans.ts";
import { type SamplerName, samplerOf } from "../../../../worker/telemetry/tracing/sampler.ts";
import type { Span } from "../../../../worker/telemetry/tracing/span.ts";

const ranAtAll = { backend: "bubblewrap", limits: [], peakMemoryBytes: undefined };

const traceId = "0af7651916cd43dd8448eb211c80319c";
const caller = `00-${traceId}-b7ad6b7169203331-01`;
/** Epoch milliseconds at which the clock of a test starts. */
const epochMs = 1_800_000_000_000;

/** A call on a clock of its own. */
function newCall(received: Partial<ReceivedCall> = {}, sampler: SamplerName = "always_on") {
  const clock = { ms: 0 };
  const sent: (readonly Span[])[] = [];
  const parts = {
    clock: { nowMs: () => epochMs, monotonicMs: () => clock.ms },
    sampler: samplerOf(sampler, 1),
    messagingSystem: "rabbitmq",
    send: (spans: readonly Span[]) => void sent.push(spans),
  };
  const none = {
    deliveryCount: 1,
    queue: undefined,
    correlationId: undefined,
    traceparent: undefined,
  };
  const call = new CallSpans(parts, { ...none, ...received });
  return { clock, call, sent };
}

test("a call has a span, and below it one for each step that it took", () => {
  const { clock, call, sent } = newCall({ traceparent: caller, queue: "heavy", deliveryCount: 2 });
  call.resolved("weather");
  call.under("standard");
  clock.ms = 20;
  call.enter("run");
  clock.ms = 500;
  call.ran({ ...ranAtAll, start: "pool", unenforced: [], cpuMs: 300 });
  call.limitReached("cpu_time");
  call.enter("publish");
  clock.ms = 510;
  call.end({ outcome: "EXECUTION_ERROR", settlement: "accepted" });

  const [[receive, run, publish, root] = []] = sent;
  expect(root).toEqual({
    name: "process weather",
    kind: "consumer",
    traceId,
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    parentId: "b7ad6b7169203331",
    isParentRemote: true,
    startMs: epochMs,
    endMs: epochMs + 510,
    attributes: {
      "messaging.system": "rabbitmq",
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": "heavy",
      "str.delivery_count": 2,
      "str.tool": "weather",
      "str.profile": "standard",
      "str.start": "pool",
      "str.limit": "cpu_time",
      "str.outcome": "EXECUTION_ERROR",
      "str.settlement": "accepted",
      "error.type": "EXECUTION_ERROR",
    },
    isFailed: true,
  });
  const below = { traceId, parentId: root?.spanId, isParentRemote: false };
  expect(receive).toMatchObject({ ...below, name: "receive", startMs: epochMs });
  expect(run).toMatchObject({
    ...below,
    name: "run",
    kind: "internal",
    startMs: epochMs + 20,
    endMs: epochMs + 500,
    attributes: { "str.cpu_ms": 300 },
  });
  expect(publish).toMatchObject({ ...below, name: "publish", kind: "producer" });
  expect(sent).toHaveLength(1);
});

describe("the context of a step", () => {
  test("is known before the step begins, and is that of its span", () => {
    const { call, sent } = newCall({ traceparent: caller });
    const ahead = call.traceparentOf("run");
    expect(call.traceparentOf("run")).toBe(ahead);
    call.enter("run");
    expect(call.traceparentOf("run")).toBe(ahead);
    call.end({ outcome: "ok", settlement: "accepted" });
    expect(ahead).toBe(`00-${traceId}-${sent[0]?.[1]?.spanId}-01`);
  });

  test("is another one when the step is entered again", () => {
    const { call } = newCall();
    call.enter("run");
    const first = call.traceparentOf("run");
    call.enter("receive");
    call.enter("run");
    expect(call.traceparentOf("run")).not.toBe(first);
  });
});

test.each(["ok", "requeued", "duplicate"])("a call that ends with %s has not failed", (outcome) => {
  const { call, sent } = newCall();
  call.end({ outcome, settlement: "none" });
  expect(sent[0]?.at(-1)).toMatchObject({ name: "process", isFailed: false });
});

test("a call that is not recorded sends nothing, and says so to others", () => {
  const { call, sent } = newCall({ traceparent: caller }, "always_off");
  call.enter("run");
  expect(call.traceparentOf("run")).toMatch(new RegExp(`^00-${traceId}-\\w{16}-00$`));
  call.end({ outcome: "ok", settlement: "accepted" });
  expect(sent).toEqual([]);
});

test("metrics and a trace follow a call together", () => {
  const { call, sent } = newCall();
  const counts = new CallCounts(() => 0);
  const both = followAll([counts.follow(), call]);
  expect(both.trace).toBe(call);
  both.enter("queue");
  both.end({ outcome: "ok", settlement: "accepted" });
  expect(sent[0]?.map(({ name }) => name)).toEqual(["receive", "queue", "process"]);
  expect(counts.samples.str_deliveries_running()).toEqual([{ labels: {}, value: 0 }]);
});
