/**
 * Rows of a batch of calls that only wait: how much sooner it is done when several workers share
 * it.
 */
import type { Agent } from "../harness/agent.ts";
import { type RunningBroker, sharingBrokers, startBroker } from "./brokers.ts";
import { connectAgent } from "./end-to-end.ts";
import { callTimeoutSeconds, environmentOf, startTimeoutMs } from "./environment.ts";
import { type Measurement, quantile } from "./measure.ts";
import { batchRow, sharingWorkers } from "./names.ts";
import { sleepTool } from "./tools.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Batches that are timed, after one that is not. */
const batches = 3;
/**
 * Calls of a batch, and seconds that each waits: enough rounds for it to matter little that the
 * last is not shared evenly.
 */
const batchCalls = 64;
const sleepSeconds = 0.25;
/** Calls that one worker runs at once. */
const maxConcurrent = 2;

/** Through each broker that shares work: by one worker and by several. */
export async function measureBatches(base: string): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  for (const kind of sharingBrokers) {
    await using broker = await startBroker(kind);
    for (const workers of [1, sharingWorkers]) {
      const timesMs = await timesOf(broker, workers, base);
      measurements.push({
        name: batchRow(kind, workers),
        kind: "batch",
        medianMs: quantile(timesMs, 0.5),
        p90Ms: quantile(timesMs, 0.9),
        p99Ms: quantile(timesMs, 0.99),
      });
    }
  }
  return measurements;
}

/** Milliseconds of each batch, sorted. */
async function timesOf(
  broker: RunningBroker,
  workers: number,
  base: string,
): Promise<readonly number[]> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  for (let n = 1; n <= workers; n++) {
    const name = `batch-${broker.kind}-${workers}-${n}`;
    const environment = await environmentOf(base, name, [], broker.variables);
    const limits = { SANDBOX_MAX_CONCURRENT: String(maxConcurrent), SAM_WORKER_ID: name };
    stack.use(await WorkerProcess.start({ ...environment, ...limits }, signal));
  }
  const agent = stack.use(await connectAgent(broker, signal));
  // The first has the workers make what waits for the calls of the others.
  await batch(agent);
  const timesMs: number[] = [];
  for (let n = 1; n <= batches; n++) timesMs.push(await batch(agent));
  return timesMs.toSorted((a, b) => a - b);
}

/** Makes all calls at once; milliseconds until the last is answered. */
async function batch(agent: Agent): Promise<number> {
  const startMs = performance.now();
  const calls = Array.from({ length: batchCalls }, async () => {
    const args = { seconds: sleepSeconds };
    const answer = await agent.call({ tool: sleepTool, args, timeoutSeconds: callTimeoutSeconds });
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  });
  await Promise.all(calls);
  return performance.now() - startMs;
}
