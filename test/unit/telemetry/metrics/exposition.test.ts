/**
 * The page of metrics, of counts without a worker.
 */
import { describe, expect, test } from "vitest";
import type { MetricName, Samples } from "../../../../worker/telemetry/metrics/catalog.ts";
import { metrics } from "../../../../worker/telemetry/metrics/catalog.ts";
import { EgressCounts } from "../../../../worker/telemetry/metrics/egress-counts.ts";
import { exposition } from "../../../../worker/telemetry/metrics/exposition.ts";
import { processSamples } from "../../../../worker/telemetry/metrics/process-samples.ts";
import { openMetrics } from "../../../../worker/wiring/metrics.ts";
import { parseMetrics, valuesOf } from "../../../support/metrics/metrics-page.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

const nothing = { sentBytes: 0, receivedBytes: 0 };

/** Counts of these tools, and their page. */
function newCounts(...tools: readonly string[]) {
  const counts = new EgressCounts();
  counts.serve(tools);
  const makePage = exposition({ ...counts.samples, ...processSamples });
  return { counts, read: async () => parseMetrics((await makePage()).text) };
}

describe("the page of metrics", () => {
  test("has every metric of the catalogue, with its type and its labels alone", async () => {
    const { counts } = newCounts("weather");
    counts.of("weather");
    const { text } = await exposition({ ...counts.samples, ...processSamples })();
    for (const [name, { type, labels, help }] of Object.entries(metrics)) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}`);
      const series = text.split("\n").filter((line) => line.startsWith(`${name}{`));
      for (const line of series)
        expect([...line.matchAll(/(\w+)="/g)].map(([, label]) => label)).toEqual(labels);
      expect(series.length > 0).toBe(labels.length > 0);
    }
    const named = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
    expect(named).toEqual(Object.keys(metrics));
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
    { ...counts.samples, ...processSamples },
    { get: (all, name) => (reads++, Reflect.get(all, name) as unknown) },
  );
  const makePage = openMetrics(samples, keptLog());
  // As long as loading it takes.
  await import("../../../../worker/telemetry/metrics/exposition.ts");
  expect(reads).toBe(0);
  await makePage();
  expect(reads).toBeGreaterThan(0);
});

test("a page that cannot be made is logged once, and the next one is tried", async () => {
  const log = keptLog();
  let fails = true;
  const none = () => [];
  const samples = {
    ...(Object.fromEntries(Object.keys(metrics).map((name) => [name, none])) as unknown as Samples),
    process_open_fds: () => {
      if (fails) throw new Error("EMFILE");
      return [{ labels: {}, value: 7 }];
    },
  } satisfies Record<MetricName, unknown>;
  const makePage = openMetrics(samples, log);
  await expect(makePage()).rejects.toThrow("EMFILE");
  await expect(makePage()).rejects.toThrow("EMFILE");
  expect(log.events).toEqual(["metrics.failed"]);
  fails = false;
  expect(parseMetrics((await makePage()).text)).toMatchObject({ process_open_fds: 7 });
});
