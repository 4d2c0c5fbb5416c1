/**
 * The metrics of a whole worker, read over HTTP as Prometheus reads them.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { metrics } from "../../../worker/telemetry/metrics/catalog.ts";
import type { MetricFacts } from "../../../worker/telemetry/metrics/catalog/facts.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { fetchMetrics, fetchMetricsText } from "../../support/metrics/metrics-page.ts";
import { patience } from "../../support/patience.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";

let rig: Rig;
let port: number;

beforeAll(async () => {
  [port] = (await freePorts(1)) as [number];
  rig = await startRig({
    tools: {
      saves: { function: "saves" },
      reads: { function: "reads" },
      raises: { function: "raises" },
      floods: { module: "greedy", function: "floods_statuses", limits: { status_kb: 16 } },
      sleeps: { function: "sleeps", start: "pool", warm: { min: 1, max: 1 } },
    },
    isWarm: true,
    environment: {
      HEALTH_PORT: String(port),
      HEALTH_HOST: "127.0.0.1",
      WORKER_QUEUES: "default:3",
    },
  });
});

afterAll(() => rig[Symbol.asyncDispose]());

/** Waits for the page: a call counts after its answer has gone. */
async function untilPage(expected: Readonly<Record<string, unknown>>): Promise<void> {
  const look = async () => expect(await fetchMetrics(port)).toMatchObject(expected);
  await vi.waitFor(look, patience);
}

const calls = (tool: string, profile: string, outcome: string): string =>
  `str_calls_total{tool="${tool}",profile="${profile}",outcome="${outcome}"}`;

test("calls of each outcome, their artifacts and their steps are counted", async () => {
  await rig.call("saves", { name: "data.csv", text: "twelve bytes" });
  const references = new Map([["input_file", { filename: "data.csv", version: 0 }]]);
  await rig.call("reads", {}, { references });
  await rig.call("raises");
  await rig.call("floods", {}, { profile: "restrictive" });
  await untilPage({
    [calls("saves", "standard", "ok")]: 1,
    [calls("reads", "standard", "ok")]: 1,
    [calls("raises", "standard", "EXECUTION_ERROR")]: 1,
    [calls("floods", "restrictive", "EXECUTION_ERROR")]: 1,
    'str_limits_reached_total{tool="floods",limit="status"}': 1,
    str_deliveries_running: 0,
    'str_artifact_bytes_total{store="filesystem",direction="written"}': 12,
    'str_artifact_bytes_total{store="filesystem",direction="read"}': 12,
    'str_artifact_operations_total{store="filesystem",operation="save",outcome="ok"}': 1,
    'str_artifact_operations_total{store="filesystem",operation="open",outcome="ok"}': 1,
    'str_call_duration_seconds_count{tool="saves"}': 1,
    'str_sandboxes_started_total{tool="raises",start="cold"}': 1,
    str_broker_connected: 1,
    str_broker_connections_total: 1,
    str_broker_unconfirmed_messages: 0,
    str_ready: 1,
    str_warnings: 0,
    str_manifest_loads_total: 1,
    str_manifest_usable: 1,
    'str_tools{state="served"}': 5,
    'str_tools{state="unavailable"}': 0,
  });
  const page = await fetchMetrics(port);
  for (const step of ["receive", "queue", "acquire", "stage", "run", "collect", "publish"])
    expect(page[`str_call_step_duration_seconds_count{step="${step}"}`], step).toBe(4);
  expect(page['str_tool_cpu_seconds_total{tool="saves"}']).toBeGreaterThan(0);
});

test("the build of the worker is that of its package", async () => {
  const { version } = JSON.parse(await readFile("package.json", "utf8")) as { version: string };
  const node = process.versions.node;
  await untilPage({ [`str_build_info{version="${version}",node="${node}"}`]: 1 });
});

test("slots, waiting calls and idle sandboxes are those of the moment", async () => {
  await rig.untilWaiting("sleeps");
  await untilPage({
    'str_slots{queue="default"}': 3,
    'str_slots_used{queue="default"}': 0,
    str_slots_lent: 0,
    'str_idle_sandboxes{tool="sleeps",profile="standard"}': 1,
    'str_idle_sandboxes_wanted{tool="sleeps",profile="standard"}': 1,
    'str_idle_hits_total{tool="sleeps",profile="standard"}': 0,
  });
  // The worker stops them at its end.
  for (let call = 0; call < 4; call++) void rig.call("sleeps", { seconds: 60 });
  await untilPage({
    'str_slots_used{queue="default"}': 3,
    'str_calls_waiting{queue="default"}': 1,
    str_deliveries_running: 4,
    'str_idle_hits_total{tool="sleeps",profile="standard"}': 1,
    'str_idle_misses_total{tool="sleeps",profile="standard"}': 2,
  });
});

test("a manifest that cannot be used shows, and the last good one stays", async () => {
  const good = await readFile(rig.manifestPath, "utf8");
  const revisions = async (): Promise<readonly string[]> =>
    Object.keys(await fetchMetrics(port)).filter((name) => name.startsWith("str_manifest_info{"));
  const before = await revisions();
  const write = async (text: string): Promise<void> => {
    await writeFile(`${rig.manifestPath}.new`, text);
    await rename(`${rig.manifestPath}.new`, rig.manifestPath);
  };
  await write("version: 1\ntools: [");
  await untilPage({ str_manifest_usable: 0, 'str_tools{state="served"}': 5 });
  const manifest = JSON.parse(good) as { tools: Record<string, unknown> };
  delete manifest.tools["raises"];
  await write(JSON.stringify(manifest));
  await untilPage({
    str_manifest_usable: 1,
    str_manifest_loads_total: 2,
    'str_tools{state="served"}': 4,
  });
  expect(await fetchMetricsText(port)).not.toContain("raises");
  const after = await revisions();
  expect([before.length, after.length]).toEqual([1, 1]);
  expect(after).not.toEqual(before);
});

test("every metric of the catalogue has values, with its labels alone", async () => {
  const labelsOf = new Map<string, readonly string[]>();
  for (const [, series = "", labels = ""] of (await fetchMetricsText(port)).matchAll(
    /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? /gm,
  ))
    labelsOf.set(
      series,
      Array.from(labels.matchAll(/(\w+)="/g), ([, label]) => label!).filter((l) => l !== "le"),
    );
  /** Of parts that this worker has not, and of what has not happened. */
  const without = [
    "str_calls_refused_total",
    "str_limits_unenforced_total",
    "str_spans_dropped_total",
    "str_artifact_cache_hits_total",
    "str_artifact_cache_misses_total",
    "str_environments",
  ];
  const expected = Object.entries<MetricFacts>(metrics).filter(
    ([name]) => labelsOf.has(name) || !without.includes(name),
  );
  for (const [name, { labels }] of expected)
    expect(labelsOf.get(name)?.toSorted(), name).toEqual([...labels].sort());
  expect([...labelsOf.keys()].sort()).toEqual(expected.map(([name]) => name).sort());
});
