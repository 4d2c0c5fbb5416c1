/**
 * What a worker process loads for traces, and that it ends in time whatever their collector does.
 */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { flushTimeoutMs } from "../../../../worker/telemetry/tracing/span-export.ts";
import { silence, startCollector } from "../../../support/tracing/collector.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import { surroundWorker } from "../../../support/workers/worker-surroundings.ts";

const printPackages = fileURLToPath(
  new URL("../../../support/workers/print-packages.mjs", import.meta.url),
);

const tools = { well: { function: "well" } };

/** Runs a worker for a call: what it loads and starts, and how long it takes to end. */
async function runFor(variables: Readonly<Record<string, string>>) {
  const { environment, connectAgent } = await surroundWorker(tools);
  const NODE_OPTIONS = `--import=${printPackages}`;
  await using worker = new WorkerProcess({ ...environment, NODE_OPTIONS, ...variables });
  await worker.says("worker.ready");
  await using agent = await connectAgent();
  const caller = { userId: "u", sessionId: "s" };
  const answer = await agent.call({ tool: "well", args: {}, ...caller, timeoutSeconds: 30 });
  expect(answer.kind).toBe("success");
  const startMs = performance.now();
  worker.child.kill("SIGTERM");
  expect(await worker.exited).toMatchObject({ code: 0 });
  const tookMs = performance.now() - startMs;
  const lines = worker.output.split("\n");
  const packages = lines.filter((line) => line.startsWith("package @opentelemetry/"));
  return { tookMs, packages, hasThread: lines.includes("thread traces") };
}

test("a worker without a collector loads nothing for traces", { tags: "full" }, async () => {
  const { packages, hasThread } = await runFor({});
  expect({ packages, hasThread }).toEqual({ packages: [], hasThread: false });
});

test(
  "a worker whose collector does not answer ends within the limit of the last export",
  { tags: "full" },
  async () => {
    await using collector = await startCollector(silence);
    const { tookMs, packages, hasThread } = await runFor({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_BSP_SCHEDULE_DELAY: "20",
    });
    // The thread alone knows them.
    expect({ packages, hasThread }).toEqual({ packages: [], hasThread: true });
    expect(collector.requests).not.toEqual([]);
    // The exporter itself would wait 10 seconds, and its queue 30.
    expect(tookMs).toBeLessThan(flushTimeoutMs + 3_000);
  },
);
