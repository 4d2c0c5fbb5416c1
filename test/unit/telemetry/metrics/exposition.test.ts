/**
 * The page of metrics, of counts without a worker.
 */
import { describe, expect, test } from "vitest";
import {
  type MetricName,
  type Samples,
  metrics,
  only,
} from "../../../../worker/telemetry/metrics/catalog.ts";
import type { MetricFacts } from "../../../../worker/telemetry/metrics/catalog/facts.ts";
import { EgressCounts } from "../../../../worker/telemetry/metrics/egress-counts.ts";
import { exposition } from "../../../../worker/telemetry/metrics/exposition.ts";
import { Histogram } from "../../../../worker/telemetry/metrics/histogram.ts";
import { processSamples } from "../../../../worker/telemetry/metrics/process-samples.ts";
import { openPage } from "../../../../worker/wiring/telemetry/metrics.ts";
import { noSamples } from "../../../support/metrics/no-samples.ts";
import { parseMetrics, valuesOf } from "../../../support/metrics/metrics-page.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

const nothing = { sentBytes: 0, receivedBytes: 0 };

/** Counts of these tools, and their page. */
function newCounts(...tools: readonly string[]) {
  const counts = new EgressCounts();
  counts.serve(tools);
  const makePage = exposition({ ...noSamples, ...counts.samples, ...processSamples });
  return { counts, read: async () => parseMetrics((await makePage()).text) };
}

describe("the page of metrics", () => {
  test("has every metric of the catalogue with its type, and values with its labels alone", async () => {
    const samples = Object.fromEntries(
      Object.entries<MetricFacts>(metrics).map(([name, { type, labels }]) => {
        const value = type === "histogram" ? new Histogram() : 7;
        return [name, () => [{ labels: Object.fromEntries(labels.map((l) => [l, "x"])), value }]];
      }),
    ) as unknown as Samples;
    const { text } = await exposition(samples)();
    for (const [name, { type, labels, help }] of Object.entries<MetricFacts>(metrics)) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}`);
      const ofLabels = labels.map((label) => `${label}="x"`).join();
      const suffix = labels.length === 0 ? "" : `{${ofLabels}}`;
      const value = type === "histogram" ? `_count${suffix} 0` : `${suffix} 7`;
      expect(text).toContain(`\n${name}${value}\n`);
    }
    const named = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
    expect(named).toEqual(Object.keys(metrics));
  });

  test("has a histogram whose buckets hold what the smaller ones hold", async () => {
    const seconds = new Histogram([0.1, 1]);
    for (const value of [0.1, 0.5, 0.5, 7]) seconds.observe(value);
    const read = () => [{ labels: { tool: "weather" }, value: seconds }];
    const { text } = await exposition({ ...noSamples, str_call_duration_seconds: read })();
    expect(text.split("\n").filter((line) => line.startsWith("str_call_d"))).toEqual([
      'str_call_duration_seconds_bucket{tool="weather",le="0.1"} 1',
      'str_call_duration_seconds_bucket{tool="weather",le="1"} 3',
      'str_call_duration_seconds_bucket{tool="weather",le="+Inf"} 4',
      'str_call_duration_seconds_sum{tool="weather"} 8.1',
      'str_call_duration_seconds_count{tool="weather"} 4',
    ]);
  });

  test("has no value of a metric without samples, with labels or without", async () => {
    const { text } = await exposition({ ...noSamples, str_ready: () => only(0) })();
    expect(parseMetrics(text)).toEqual({ str_ready: 0 });
  });

  test("counts each connection once, by its verdict, and what is refused in its place apart", async () => {
    const { counts, read } = newCounts("weather", "idle");
    const weather = counts.of("weather");
    weather.ended({ sentBytes: 3, receivedBytes: 70 });
    weather.ended({ sentBytes: 1, receivedBytes: 0, refusal: "sni" });
    weather.ended({ ...nothing, refusal: "name-not-allowed", refusedPart: "name" });
    weather.ended({ ...nothing, refusal: "request", refusedPart: "request" });
    const first = await read();
    expect(valuesOf("weather", first)).toEqual({
      'str_egress_connections_total{verdict="allowed"}': 1,
      'str_egress_connections_total{verdict="refused"}': 1,
      'str_egress_bytes_total{direction="sent"}': 4,
      'str_egress_bytes_total{direction="received"}': 70,
      str_egress_open_connections: 0,
      str_egress_refused_names_total: 1,
      str_egress_refused_requests_total: 1,
    });
    expect(valuesOf("idle", first)).toEqual({});
    // Neither a page nor two at a time change what is counted.
    const again = await Promise.all([read(), read()]);
    for (const values of again)
      expect(valuesOf("weather", values)).toEqual(valuesOf("weather", first));
  });

  test("has the open connections of the sandboxes of a tool, until each is followed no more", async () => {
    const { counts, read } = newCounts("weather");
    const [one, two] = [{ open: 2 }, { open: 1 }];
    const [first, second] = [one, two].map((sandbox) => counts.of("weather").follow(sandbox));
    const open = async () => (await read())['str_egress_open_connections{tool="weather"}'];
    expect(await open()).toBe(3);
    one.open--;
    expect(await open()).toBe(2);
    first![Symbol.dispose]();
    expect(await open()).toBe(1);
    second![Symbol.dispose]();
    expect(await open()).toBe(0);
  });

  test("has no tool that is not served, whatever its running calls do", async () => {
    const { counts, read } = newCounts("gone", "kept");
    const gone = counts.of("gone");
    counts.of("kept").ended({ sentBytes: 5, receivedBytes: 0 });
    counts.serve(["kept"]);
    gone.ended(nothing);
    counts.of("gone").ended(nothing);
    counts.of("never").ended(nothing);
    const values = await read();
    expect(Object.keys(values).filter((name) => name.includes("tool="))).toHaveLength(7);
    expect(valuesOf("kept", values)).toMatchObject({
      'str_egress_bytes_total{direction="sent"}': 5,
    });
    counts.serve(["gone", "kept"]);
    expect(valuesOf("gone", await read())).toEqual({});
  });

  test("has what the kernel says of the process", async () => {
    const values = await newCounts().read();
    expect(values["process_cpu_seconds_total"]).toBeGreaterThan(0);
    expect(values["process_resident_memory_bytes"]).toBeGreaterThan(10_000_000);
    expect(values["process_open_fds"]).toBeGreaterThan(2);
    const age = Date.now() / 1000 - values["process_start_time_seconds"]!;
    expect(Math.abs(age - process.uptime())).toBeLessThan(2);
  });
});

test("the library is loaded for the first page, not before", async () => {
  const { counts } = newCounts();
  let reads = 0;
  const samples = new Proxy<Samples>(
    { ...noSamples, ...counts.samples, ...processSamples },
    { get: (all, name) => (reads++, Reflect.get(all, name) as unknown) },
  );
  const makePage = openPage(samples, keptLog());
  // As long as loading it takes.
  await import("../../../../worker/telemetry/metrics/exposition.ts");
  expect(reads).toBe(0);
  await makePage();
  expect(reads).toBeGreaterThan(0);
});

test("a page that cannot be made is logged once, and the next one is tried", async () => {
  const log = keptLog();
  let fails = true;
  const samples = {
    ...noSamples,
    process_open_fds: () => {
      if (fails) throw new Error("EMFILE");
      return [{ labels: {}, value: 7 }];
    },
  } satisfies Record<MetricName, unknown>;
  const makePage = openPage(samples, log);
  await expect(makePage()).rejects.toThrow("EMFILE");
  await expect(makePage()).rejects.toThrow("EMFILE");
  expect(log.events).toEqual(["metrics.failed"]);
  fails = false;
  expect(parseMetrics((await makePage()).text)).toMatchObject({ process_open_fds: 7 });
});
