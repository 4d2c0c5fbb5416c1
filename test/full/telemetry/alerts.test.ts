/**
 * The rules and the dashboard of deploy/ in a real Prometheus, which scrapes two workers under
 * load.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Agent } from "../../../harness/agent.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { debianProgram } from "../../support/metrics/debian-program.ts";
import { configPath, queries, rulesPath } from "../../support/metrics/deployed.ts";
import { type Prometheus, startPrometheus } from "../../support/metrics/prometheus.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { surroundWorker } from "../../support/workers/worker-surroundings.ts";

const cases = join(import.meta.dirname, "../../fixtures/prometheus/alerts.yaml");

describe("promtool", () => {
  test.for([
    ["check", "config", configPath],
    ["check", "rules", "--lint-fatal", rulesPath],
    ["test", "rules", cases],
  ])("accepts what it is given: %s %s", async (argv, context) => {
    const promtool = await debianProgram(context, "prometheus", "usr/bin/promtool");
    const { stdout } = await promisify(execFile)(promtool, argv);
    expect(stdout).toContain("SUCCESS");
  });
});

/** Minutes that nothing else needs: Prometheus, two workers and their calls share the machine. */
const patience = { timeout: 120_000, interval: 500 };

const tools = {
  saves: { function: "saves" },
  reads: { function: "reads" },
  raises: { function: "raises" },
  exits: { function: "exits_3" },
  floods: { module: "greedy", function: "floods_statuses", limits: { status_kb: 16 } },
  waits: { function: "sleeps", start: "pool", warm: { min: 1, max: 1 } },
} as const;

/** A worker process with metrics, on the broker of its surroundings unless another is given. */
async function startWorker(
  { environment }: Awaited<ReturnType<typeof surroundWorker>>,
  broker: Readonly<Record<string, string>> = {},
): Promise<{ worker: WorkerProcess; instance: string }> {
  const [port] = await freePorts(1);
  const worker = new WorkerProcess({
    ...environment,
    ...{ HEALTH_HOST: "127.0.0.1", HEALTH_PORT: String(port), WARM_MAX_MEMORY_MB: "256" },
    ...broker,
  });
  onTestFinished(() => worker[Symbol.asyncDispose]());
  await worker.says("worker.ready");
  return { worker, instance: `127.0.0.1:${port}` };
}

/** Calls each tool once, each with the end that it is for. */
async function callAll(agent: Agent): Promise<void> {
  const call = (tool: keyof typeof tools, args = {}, more = {}) =>
    agent.call({
      ...{ tool, args, userId: "user-42", sessionId: "web-1", timeoutSeconds: 60 },
      ...more,
    });
  await call("saves", { name: "data.csv", text: "twelve bytes" });
  const references = new Map([["input_file", { filename: "data.csv", version: 0 }]]);
  await call("reads", {}, { references });
  await Promise.all([call("raises"), call("exits"), call("floods"), call("waits", { seconds: 0 })]);
}

/** Panels about what these workers have not, or what does not happen to them. */
const emptyPanels = [
  "Refused before the tool was known",
  "Calls without a protection",
  "Connections of tools",
  "Bytes of connections",
  "Open connections",
  "Refused names and requests",
  "Inputs from the local cache",
  "Environments of packages",
  "Spans that were lost",
];

/** An expression of the dashboard as Grafana asks for all workers and tools. */
const asked = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:instance|tool)/g, ".*");

/** Alerts about a worker as a whole; those about its calls have reasons of their own here. */
const ofWorkers = ["StrBrokerAway", "StrNoWorkerReady", "StrWorkerDown", "StrWorkerNotReady"];

/** Those of them that fire, as `name instance`. */
async function firing(prometheus: Prometheus): Promise<readonly string[]> {
  const alerts = (await prometheus.alerts()).filter(
    ({ labels, state }) => state === "firing" && ofWorkers.includes(labels["alertname"]!),
  );
  return alerts.map(({ labels }) => `${labels["alertname"]} ${labels["instance"]}`);
}

async function startPrometheusFor(
  context: TestContext,
  instances: readonly string[],
): Promise<Prometheus> {
  const program = await debianProgram(context, "prometheus", "usr/bin/prometheus");
  const prometheus = await startPrometheus(program, instances);
  onTestFinished(() => prometheus[Symbol.asyncDispose]());
  return prometheus;
}

test("the panels have values of workers under load, and alerts fire for the broken worker alone", async (context) => {
  const surroundings = await surroundWorker(tools);
  const good = await startWorker(surroundings);
  const brokers = new AsyncDisposableStack();
  onTestFinished(() => brokers.disposeAsync());
  const broker = brokers.use(await startDevBroker());
  const bad = await startWorker(await surroundWorker(tools), {
    DEV_BROKER_PORT: String(broker.port),
  });
  const prometheus = await startPrometheusFor(context, [good.instance, bad.instance]);
  const isUp = async () =>
    expect(await prometheus.query('up{job="str-worker"} == 1')).toHaveLength(2);
  await vi.waitFor(isUp, patience);

  await using agent = await surroundings.connectAgent();
  await callAll(agent);
  const unfilled = async (): Promise<readonly string[]> => {
    const found = await Promise.all(queries.map(({ expr }) => prometheus.query(asked(expr))));
    const empty = queries.filter((_, index) => found[index]!.length === 0);
    return [...new Set(empty.map(({ title }) => title))];
  };
  // A rate needs two looks.
  await vi.waitFor(async () => {
    await callAll(agent);
    expect((await unfilled()).filter((title) => !emptyPanels.includes(title))).toEqual([]);
  }, patience);

  const fires = (alert: string) =>
    vi.waitFor(
      async () => expect(await firing(prometheus)).toEqual([`${alert} ${bad.instance}`]),
      patience,
    );
  expect(await firing(prometheus)).toEqual([]);
  await brokers.disposeAsync();
  await fires("StrBrokerAway");
  bad.worker.child.kill("SIGSTOP");
  await fires("StrWorkerDown");
});
