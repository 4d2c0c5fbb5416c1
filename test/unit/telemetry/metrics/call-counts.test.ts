/**
 * Counts of calls that are followed, without a worker.
 */
import { expect, test } from "vitest";
import { CallCounts } from "../../../../worker/telemetry/metrics/call-counts.ts";
import { exposition } from "../../../../worker/telemetry/metrics/exposition.ts";
import { noSamples } from "../../../support/metrics/no-samples.ts";
import { parseMetrics } from "../../../support/metrics/metrics-page.ts";

const ranAtAll = { backend: "bubblewrap", limits: [], peakMemoryBytes: undefined };

/** Counts on a clock of their own, in milliseconds. */
function newCounts(...tools: readonly string[]) {
  const clock = { ms: 0 };
  const counts = new CallCounts(() => clock.ms);
  counts.serve(tools);
  const makePage = exposition({ ...noSamples, ...counts.samples });
  return { clock, counts, read: async () => parseMetrics((await makePage()).text) };
}

test("a call counts by tool, profile and outcome, with its time in each step", async () => {
  const { clock, counts, read } = newCounts("weather");
  const call = counts.follow();
  call.resolved("weather");
  call.under("standard");
  for (const [step, ms] of [
    ["queue", 20],
    ["run", 4_000],
    ["publish", 2_000],
  ] as const) {
    clock.ms += ms;
    call.enter(step);
  }
  expect(await read()).toMatchObject({
    str_deliveries_received_total: 1,
    str_deliveries_running: 1,
    'str_call_step_duration_seconds_bucket{step="receive",le="0.01"}': 0,
    'str_call_step_duration_seconds_bucket{step="receive",le="0.03"}': 1,
    'str_call_step_duration_seconds_sum{step="queue"}': 4,
    'str_call_step_duration_seconds_sum{step="run"}': 2,
  });
  clock.ms += 500;
  call.ran({ ...ranAtAll, start: "pool", unenforced: ["memoryBytes"], cpuMs: 1_500 });
  call.limitReached("cpu_time");
  call.end({ outcome: "EXECUTION_ERROR", settlement: "accepted" });
  expect(await read()).toMatchObject({
    str_deliveries_running: 0,
    'str_deliveries_settled_total{settlement="accepted"}': 1,
    'str_calls_total{tool="weather",profile="standard",outcome="EXECUTION_ERROR"}': 1,
    'str_call_duration_seconds_sum{tool="weather"}': 6.52,
    'str_call_duration_seconds_bucket{tool="weather",le="3"}': 0,
    'str_call_duration_seconds_bucket{tool="weather",le="10"}': 1,
    'str_call_step_duration_seconds_count{step="publish"}': 1,
    'str_sandboxes_started_total{tool="weather",start="pool"}': 1,
    'str_tool_cpu_seconds_total{tool="weather"}': 1.5,
    'str_limits_reached_total{tool="weather",limit="cpu_time"}': 1,
    'str_limits_unenforced_total{limit="memoryBytes"}': 1,
  });
});

test("a call that a tool makes counts by tool, and is no delivery", async () => {
  const { clock, counts, read } = newCounts("weather");
  const call = counts.follow(undefined, true);
  call.resolved("weather");
  call.under("standard");
  expect(await read()).toMatchObject({
    str_deliveries_received_total: 0,
    str_deliveries_running: 0,
  });
  clock.ms += 20;
  call.end({ outcome: "ok", settlement: "none" });
  expect(await read()).toMatchObject({
    str_deliveries_running: 0,
    'str_deliveries_settled_total{settlement="none"}': 0,
    'str_calls_total{tool="weather",profile="standard",outcome="ok"}': 1,
    'str_call_duration_seconds_sum{tool="weather"}': 0.02,
  });
});

test("a page of OpenMetrics has the last recorded trace of each bucket, and the same names", async () => {
  const [clock, epochMs] = [{ ms: 0 }, 1_700_000_000_500];
  const counts = new CallCounts(
    () => clock.ms,
    () => epochMs,
  );
  counts.serve(["weather"]);
  const call = (ms: number, trace?: { traceId: string; isSampled: boolean }): void => {
    const follower = counts.follow(trace);
    follower.resolved("weather");
    clock.ms += ms;
    follower.end({ outcome: "ok", settlement: "accepted" });
  };
  call(20, { traceId: "a".repeat(32), isSampled: true });
  call(25, { traceId: "b".repeat(32), isSampled: true });
  call(25, { traceId: "c".repeat(32), isSampled: false });
  call(25);
  const makePage = exposition({ ...noSamples, ...counts.samples });
  const open = await makePage("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  expect(open.contentType).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
  expect(open.text.endsWith("\n# EOF\n")).toBe(true);
  const exemplar = / # .*$/gm;
  expect(open.text.match(exemplar)).toEqual([
    ` # {trace_id="${"b".repeat(32)}"} 0.025 1700000000.5`,
  ]);
  // The first page of OpenMetrics does not rename what is on others.
  const plain = await makePage("text/plain");
  expect(plain.text).not.toMatch(exemplar);
  expect(parseMetrics(open.text.replaceAll(exemplar, ""))).toEqual(parseMetrics(plain.text));
});

test("a call of a tool that is not served adds no series", async () => {
  const { counts, read } = newCounts("weather");
  const ending = { outcome: "TOOL_NOT_AVAILABLE", settlement: "accepted" } as const;
  for (let call = 0; call < 100; call++) {
    const follower = counts.follow();
    if (call > 0) follower.resolved(`chosen-${call}`);
    follower.under("standard");
    follower.ran({ ...ranAtAll, start: "cold", unenforced: [], cpuMs: 1 });
    follower.limitReached("files");
    follower.end(ending);
  }
  const values = await read();
  expect(Object.keys(values).filter((name) => name.includes("tool="))).toEqual([]);
  expect(values).toMatchObject({
    str_deliveries_received_total: 100,
    'str_calls_refused_total{outcome="TOOL_NOT_AVAILABLE"}': 1,
  });
});

test("a tool loses its series when it is no longer served", async () => {
  const { counts, read } = newCounts("weather");
  const call = counts.follow();
  call.resolved("weather");
  call.end({ outcome: "ok", settlement: "accepted" });
  expect(await read()).toHaveProperty('str_calls_total{tool="weather",profile="",outcome="ok"}');
  counts.serve(["other"]);
  expect(JSON.stringify(await read())).not.toContain("weather");
});

test("each settlement has a value before its first delivery, so that the first one is an increase", async () => {
  const { read } = newCounts("weather");
  for (const settlement of ["accepted", "failed", "rejected", "none"])
    expect(await read()).toHaveProperty(
      `str_deliveries_settled_total{settlement="${settlement}"}`,
      0,
    );
});

test("a delivery that another one answers counts, and has no duration", async () => {
  const { counts, read } = newCounts("weather");
  for (const outcome of ["duplicate", "requeued"]) {
    const call = counts.follow();
    call.resolved("weather");
    call.end({ outcome, settlement: "none" });
  }
  expect(await read()).toMatchObject({
    'str_calls_total{tool="weather",profile="",outcome="duplicate"}': 1,
    'str_calls_total{tool="weather",profile="",outcome="requeued"}': 1,
    'str_call_duration_seconds_count{tool="weather"}': 0,
  });
});
