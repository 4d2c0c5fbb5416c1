/**
 * A worker under calls at a fixed rate for as long as wanted: how long they take, and whether what
 * it holds grows.
 */
import type { Agent } from "../../harness/agent.ts";
import { freePorts } from "../../test/support/brokers/rabbitmq-ports.ts";
import { fetchMetrics } from "../../test/support/metrics/metrics-page.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { type BrokerKind, startBroker } from "../brokers.ts";
import { connectAgent } from "../end-to-end.ts";
import { environmentOf, makeBase, makeDirectory, startTimeoutMs } from "../environment.ts";
import { quiet } from "../stock.ts";
import { WorkerProcess } from "../worker-process.ts";
import { Load } from "./load.ts";
import { callOf, soakTools, toolOf } from "./mix.ts";
import { Points, sampleOf } from "./points.ts";
import { schedule } from "./schedule.ts";
import type { MeasuredSoak } from "./table.ts";

/** What a soak is like. */
export interface SoakOptions {
  readonly minutes: number;
  readonly callsPerSecond: number;
  readonly broker: BrokerKind;
}

/** Seed of the schedule: runs of one rate and length have the same. */
const seed = 1;
/** Calls that a worker some seconds behind has in flight. */
const maxInFlight = 200;
const sampleMs = 1_000;
const secondsPerMinute = 60;
/** A long soak saves more artifacts than memory is to hold. */
const disk = "/var/tmp";

/** Starts a broker, a worker and an agent, and makes the calls. */
export async function measureSoak(options: SoakOptions): Promise<MeasuredSoak> {
  const { minutes, callsPerSecond } = options;
  const seconds = minutes * secondsPerMinute;
  await using base = await makeBase();
  await using parts = await openParts(options.broker, base.path);
  const { agent, worker, metricsPort } = parts;
  for (const { index, tool } of firstOfEach()) {
    const code = await callOnce(agent, index);
    if (code !== undefined) throw new Error(`${tool}: ${code}`);
  }
  await quiet([() => worker.stats()]);

  const load = new Load({
    dueMs: schedule(callsPerSecond, seconds, seed),
    maxInFlight,
    call: (index) => callOnce(agent, index),
    kindOf: toolOf,
    clock: systemClock,
  });
  const points = new Points(seconds);
  const done = new AbortController();
  const watching = watch(points, load, worker, metricsPort, done.signal);
  const running = load.run().finally(() => done.abort());
  // A worker that cannot be read any more ends the soak.
  const [result] = await Promise.all([running, watching]);
  return {
    ...{ minutes, callsPerSecond, broker: options.broker, seed, maxInFlight },
    ...{ workDirs: base.kind, ...result, points: points.all },
  };
}

interface Parts extends AsyncDisposable {
  readonly agent: Agent;
  readonly worker: WorkerProcess;
  readonly metricsPort: number;
}

async function openParts(kind: BrokerKind, base: string): Promise<Parts> {
  await using owned = new AsyncDisposableStack();
  const signal = AbortSignal.timeout(startTimeoutMs);
  const artifacts = owned.use(await makeDirectory(disk));
  const broker = owned.use(await startBroker(kind));
  const [metricsPort = 0] = await freePorts(1);
  const environment = {
    ...(await environmentOf(base, "soak", soakTools, broker.variables)),
    ...{ HEALTH_PORT: String(metricsPort), HEALTH_HOST: "127.0.0.1" },
    ARTIFACT_BASE_PATH: artifacts.path,
  };
  const worker = owned.use(await WorkerProcess.start(environment, signal));
  const agent = owned.use(await connectAgent(broker, signal));
  const all = owned.move();
  return { agent, worker, metricsPort, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** The first call of each tool, which the worker prepares something for. */
function firstOfEach(): readonly { index: number; tool: string }[] {
  const calls = Array.from({ length: 10 }, (_, index) => ({ index, tool: toolOf(index) }));
  return calls.filter(({ tool }, index) => calls.findIndex((c) => c.tool === tool) === index);
}

/** Resolves to the code of the call's error, or undefined for a success. */
async function callOnce(agent: Agent, index: number): Promise<string | undefined> {
  const result = await agent.call(callOf(index));
  if (result.kind === "success") return undefined;
  return result.kind === "error" ? result.code : result.kind;
}

/** Looks at the worker every second until the signal. */
async function watch(
  points: Points,
  load: Load,
  worker: WorkerProcess,
  metricsPort: number,
  signal: AbortSignal,
): Promise<void> {
  const startMs = systemClock.monotonicMs();
  await worker.takeDelays();
  let liveBytes = await worker.liveBytes();
  for (let second = 1; ; second++) {
    const waitMs = startMs + second * sampleMs - systemClock.monotonicMs();
    await systemClock.sleep(Math.max(0, waitMs), signal).catch(() => undefined);
    if (signal.aborted) return;
    const delays = await worker.takeDelays();
    const metrics = await fetchMetrics(metricsPort);
    if (second % secondsPerMinute === 0) liveBytes = await worker.liveBytes();
    const resources = await worker.resources();
    const sample = sampleOf(metrics, { resources, liveBytes, delays });
    const atSeconds = (systemClock.monotonicMs() - startMs) / 1000;
    points.add(sample, atSeconds, () => load.takeWindow());
  }
}
