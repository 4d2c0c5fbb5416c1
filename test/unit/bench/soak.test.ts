/**
 * The schedule, the load and the verdicts of a soak.
 */
import { describe, expect, test } from "vitest";
import { LatencyHistogram } from "../../../bench/soak/latencies.ts";
import { Load, type LoadOptions } from "../../../bench/soak/load.ts";
import { callOf, toolOf } from "../../../bench/soak/mix.ts";
import { soakOptions } from "../../../bench/soak/options.ts";
import { type Sample, Points, sampleOf } from "../../../bench/soak/points.ts";
import { plotSoak } from "../../../bench/soak/plot.ts";
import { schedule } from "../../../bench/soak/schedule.ts";
import { type SoakReport, formatSoak } from "../../../bench/soak/table.ts";
import { minPoints, trendOf } from "../../../bench/soak/trend.ts";
import { artifactTool } from "../../../bench/tools.ts";
import { systemClock } from "../../../worker/support/clock.ts";

const none = new LatencyHistogram().latencies;
const sample: Sample = {
  ...{
    memoryBytes: 2 ** 20,
    liveBytes: 2 ** 19,
    idleBytes: 0,
    idleSandboxes: 0,
    descriptors: 50,
    resources: 9,
  },
  ...{ loopP99Ms: 1, loopMaxMs: 2 },
};

describe("a schedule", () => {
  test("has the rate that is asked, and the same calls for the same seed", () => {
    const due = [...schedule(50, 100, 1)];
    expect(due.length).toBeGreaterThan(4_700);
    expect(due.length).toBeLessThan(5_300);
    expect(due).toEqual(due.toSorted((a, b) => a - b));
    expect(due.at(-1)).toBeLessThan(100_000);
    expect([...schedule(50, 100, 1)]).toEqual(due);
    expect([...schedule(50, 100, 2)]).not.toEqual(due);
  });
});

describe("a load", () => {
  const options: LoadOptions = {
    ...{ dueMs: [], maxInFlight: 10, clock: systemClock },
    call: () => Promise.resolve(undefined),
    kindOf: () => "any",
  };

  /** A clock that waits without time, but for a wait of 10 ms, which is late. */
  function stalledBy(ms: number) {
    let nowMs = 0;
    return {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: async (wait: number) => {
        // The calls before end first.
        await new Promise((resolve) => setImmediate(resolve));
        nowMs += wait === 10 ? ms : wait;
      },
    };
  }

  test("counts latencies from when calls were due, though they were sent later", async () => {
    const load = new Load({ ...options, dueMs: [0, 10, 20], clock: stalledBy(100) });
    const { latencies, lateness } = await load.run();
    expect(latencies.count).toBe(3);
    expect(latencies.maxMs).toBeCloseTo(90, 0);
    expect(latencies.p50Ms).toBeCloseTo(80, 0);
    expect(lateness.maxMs).toBeCloseTo(90, 0);
  });

  test("counts calls beyond the bound as missed, and does not make them later", async () => {
    const made: number[] = [];
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const call = (index: number) => {
      made.push(index);
      return promise;
    };
    function* dueMs(): Generator<number> {
      yield* [0, 1, 2, 3];
      // All of them were due by now.
      resolve(undefined);
    }
    const load = new Load({ ...options, dueMs: dueMs(), maxInFlight: 2, call });
    const { missed, latencies } = await load.run();
    expect(made).toEqual([0, 1]);
    expect(missed).toBe(2);
    expect(latencies.count).toBe(2);
  });

  test("counts errors by code, and latencies of successes by kind and apart", async () => {
    const clock = stalledBy(10);
    const load = new Load({
      ...options,
      dueMs: [0, 0, 0, 0],
      call: async (index) => {
        // The last one fails at another time than the others succeed.
        if (index === 3) await clock.sleep(40);
        return index === 3 ? "TOOL_ERROR" : undefined;
      },
      kindOf: (index) => (index === 2 ? "b" : "a"),
      clock,
    });
    const { errors, byKind, latencies, succeeded, failed } = await load.run();
    expect(errors).toEqual({ TOOL_ERROR: 1 });
    expect([byKind["a"]!.count, byKind["b"]!.count]).toEqual([2, 1]);
    expect([latencies.count, succeeded!.count, failed!.count]).toEqual([4, 3, 1]);
    expect(failed!.maxMs).toBeCloseTo(40, 0);
    expect(succeeded!.maxMs).toBeLessThan(1);
    expect(load.takeWindow()).toEqual(succeeded);
  });

  test("ends by what a call throws", async () => {
    const call = () => Promise.reject(new Error("lost"));
    await expect(new Load({ ...options, dueMs: [0, 5, 10], call }).run()).rejects.toThrow("lost");
  });
});

test("percentiles are true to a thousandth, and a window forgets", () => {
  const histogram = new LatencyHistogram();
  for (let ms = 1; ms <= 1_000; ms++) histogram.record(ms);
  const { p50Ms, p90Ms, p99Ms, p999Ms, maxMs } = histogram.take();
  for (const [value, wanted] of [
    ...[[p50Ms, 500] as const, [p90Ms, 900] as const, [p99Ms, 990] as const],
    ...[[p999Ms, 999] as const, [maxMs, 1_000] as const],
  ])
    expect(Math.abs(value / wanted - 1)).toBeLessThan(0.002);
  expect(histogram.take()).toEqual(none);
});

describe("a trend", () => {
  /** A value each second; what it is by its number. */
  const series = (valueOf: (n: number) => number, length = 200) =>
    Array.from({ length }, (_, n) => ({ atSeconds: n + 1, value: valueOf(n) }));
  /** A saw, as garbage that is collected now and then. */
  const saw = (n: number): number => (n * 7) % 20;

  test("grows by a leak below a saw", () => {
    const { verdict, perHour, rise } = trendOf(
      series((n) => 100 + saw(n) + n / 4),
      16,
    );
    expect(verdict).toBe("grows");
    expect(perHour).toBeCloseTo(900, -2);
    expect(rise).toBeCloseTo(37, -1);
  });

  test.each([
    ["a saw", (n: number) => 100 + saw(n)],
    ["a rise within the slack", (n: number) => 100 + saw(n) + n / 15],
    ["a rise within the spread", (n: number) => 100 + 10 * saw(n) + n / 4],
    ["a step of the warm-up", (n: number) => (n < 40 ? 0 : 100)],
    ["outliers at the end", (n: number) => (n > 180 ? 500 : 100)],
    ["a fall", (n: number) => 500 - n],
  ])("does not grow by %s", (_, valueOf) => {
    expect(trendOf(series(valueOf), 16).verdict).toBe("does not grow");
  });

  test("has no verdict of few points", () => {
    expect(
      trendOf(
        series((n) => 100 * n, minPoints),
        16,
      ).verdict,
    ).toBe("too short");
    expect(trendOf([], 16).verdict).toBe("too short");
  });
});

test("points are bounded, whatever the length, and each is the median of its samples", () => {
  const hour = 3_600;
  const points = new Points(hour);
  for (let second = 1; second <= hour; second++)
    points.add({ ...sample, descriptors: second, loopMaxMs: second }, second, () => none);
  expect(points.all).toHaveLength(200);
  expect(points.all[1]).toMatchObject({ atSeconds: 36, descriptors: 27, loopMaxMs: 36 });
});

test("a sample has the sum over idle sandboxes of all tools", () => {
  const metrics = {
    ...{ process_open_fds: 7, process_resident_memory_bytes: 8 },
    ...{ 'str_idle_memory_bytes{tool="a"}': 1, 'str_idle_memory_bytes{tool="b"}': 2 },
    'str_idle_sandboxes_wanted{tool="a"}': 9,
  };
  const delays = { medianMs: 0, p90Ms: 0, p99Ms: 3, maxMs: 4 };
  expect(sampleOf(metrics, { resources: 5, liveBytes: 6, delays })).toEqual({
    ...{
      memoryBytes: 8,
      liveBytes: 6,
      idleBytes: 3,
      idleSandboxes: 0,
      descriptors: 7,
      resources: 5,
    },
    ...{ loopP99Ms: 3, loopMaxMs: 4 },
  });
});

test("the mix has each tool in ten calls, and few calls of one session", () => {
  const ten = Array.from({ length: 10 }, (_, index) => toolOf(index));
  expect(new Set(ten).size).toBe(4);
  expect(ten.filter((tool) => tool === artifactTool)).toHaveLength(2);
  expect(callOf(99).sessionId).toBe(callOf(0).sessionId);
  expect(callOf(100).sessionId).not.toBe(callOf(0).sessionId);
});

test("options are a number of minutes, a rate and a broker", () => {
  expect(soakOptions({})).toBeUndefined();
  expect(soakOptions({ soak: "0.5" })).toEqual({ minutes: 0.5, callsPerSecond: 10, broker: "dev" });
  expect(soakOptions({ soak: "60", rate: "2", broker: "amqp" })).toMatchObject({ broker: "amqp" });
  expect(() => soakOptions({ soak: "x" })).toThrow("--soak");
  expect(() => soakOptions({ soak: "1", rate: "0" })).toThrow("--rate");
  expect(() => soakOptions({ soak: "1", broker: "kafka" })).toThrow("--broker");
  expect(() => soakOptions({ rate: "1" })).toThrow("--soak");
});

describe("a report", () => {
  const points = Array.from({ length: 100 }, (_, n) => ({
    ...{ ...sample, atSeconds: n + 1, latencyP50Ms: 10, latencyP99Ms: 50 },
    descriptors: 50 + n,
  }));
  const report: SoakReport = {
    ...{ date: "2026-11-28", commit: "abc1234", kernel: "6.12", versions: {} },
    machine: { cpu: "a <fast> processor", cores: 2, memoryBytes: 1 },
    ...{ minutes: 1, callsPerSecond: 10, broker: "amqp", seed: 1, maxInFlight: 200 },
    ...{ workDirs: "in memory", latencies: { ...none, count: 3, p999Ms: 12.34 }, byKind: {} },
    ...{ lateness: none, missed: 4, errors: { POISONED: 2 }, points },
  };

  test("says what grows and what does not, what was missed and what failed", () => {
    const text = formatSoak(report);
    expect(text).toMatch(/\| open descriptors \| 50 \| 149 \| 75 \| 8 \| 3600 \| grows \|/);
    expect(text).toMatch(/\| resources of the event loop .* \| does not grow \|/);
    expect(text).toContain("| resident memory of the worker, MiB | 1 | 1 |  |  |  | at most 1 |");
    expect(text).toContain("Errors: POISONED 2. Missed, with 200 calls in flight: 4.");
    expect(text).toContain("RabbitMQ, 1 minutes at 10 calls a second, seed 1");
    expect(text).toContain("| all calls | 3 | 0.00 | 0.00 | 0.00 | 12.3 | 0.00 |");
    expect(text).not.toContain("successful calls");
  });

  test("has successful calls apart from failed ones, if some failed", () => {
    const apart = { succeeded: { ...none, count: 2 }, failed: { ...none, count: 1, maxMs: 50 } };
    const text = formatSoak({ ...report, ...apart });
    expect(text).toContain("| successful calls | 2 | 0.00 | 0.00 | 0.00 | 0.00 | 0.00 |");
    expect(text).toContain("| failed calls | 1 | 0.00 | 0.00 | 0.00 | 0.00 | 50.0 |");
    expect(formatSoak({ ...report, ...apart, failed: none })).not.toContain("failed calls");
  });

  test("has a plot whose lines have each point, and that is well-formed", () => {
    const svg = plotSoak(report);
    const lines = [...svg.matchAll(/class="line" d="M([^"]*)"/g)].map(([, path]) => path!);
    expect(lines).toHaveLength(8);
    for (const line of lines) expect(line.split("L")).toHaveLength(points.length);
    expect(svg).toContain("a &lt;fast&gt; processor");
    const opened = [...svg.matchAll(/<(\w+)(?: [^>]*)?(?<!\/)>/g)].map(([, name]) => name).sort();
    const closed = [...svg.matchAll(/<\/(\w+)>/g)].map(([, name]) => name).sort();
    expect(opened).toEqual(closed);
    expect(svg).not.toMatch(/NaN|<script|href|url\(|@import/);
    expect(plotSoak({ ...report, points: [] })).not.toMatch(/NaN/);
  });
});
