/**
 * The thread that exports spans, without a worker.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import type { Span } from "../../../worker/telemetry/tracing/span.ts";
import { SpanExport, flushTimeoutMs } from "../../../worker/telemetry/tracing/span-export.ts";
import { patience } from "../../support/patience.ts";
import { type Answering, silence, startCollector } from "../../support/tracing/collector.ts";
import { evaluated } from "../../support/threads/evaluated.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const span: Span = {
  name: "run",
  kind: "internal",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentId: undefined,
  isParentRemote: false,
  startMs: 1_800_000_000_000.25,
  endMs: 1_800_000_000_001.5,
  attributes: { text: "a", count: 7, part: 0.5, isIt: true },
  isFailed: false,
};

const neverAborted = new AbortController().signal;

const batch = {
  scheduledDelayMillis: 10,
  exportTimeoutMillis: 30_000,
  maxQueueSize: 100_000,
  maxExportBatchSize: 100_000,
};

interface Setting {
  readonly answer?: Answering;
  readonly giveUp?: AbortSignal;
  readonly limits?: Partial<typeof batch>;
}

/** An export to a collector, on a clock that tells how long it was to wait and does not. */
async function setUp({ answer, giveUp = neverAborted, limits }: Setting = {}) {
  const collector = await startCollector(answer);
  onTestFinished(() => collector[Symbol.asyncDispose]());
  const log = keptLog();
  const waits: number[] = [];
  const clock = {
    sleep: (ms: number, signal?: AbortSignal) => {
      waits.push(ms);
      return answer === silence ? Promise.resolve() : systemClock.sleep(ms, signal);
    },
  };
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  const settings = { batch: { ...batch, ...limits }, resource: {} };
  const exported = new SpanExport(settings, environment, { clock, log, giveUp });
  return { collector, exported, log, waits };
}

test("a span arrives as it was", async () => {
  const { collector, exported } = await setUp();
  exported.send([span]);
  // A disposal waits so long and no longer, and the thread may have to start first.
  await vi.waitFor(() => expect(collector.spans).toHaveLength(1), patience);
  await exported[Symbol.asyncDispose]();
  expect(collector.spans).toMatchObject([
    {
      name: "run",
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: "",
      startNs: 1_800_000_000_000_250_000n,
      endNs: 1_800_000_000_001_500_000n,
      attributes: span.attributes,
      status: 0,
    },
  ]);
});

test(
  "spans of deliveries that the thread does not keep up with are dropped",
  { tags: "full" },
  async () => {
    const { collector, exported } = await setUp();
    for (let call = 0; call < 1_500; call++) exported.send([span]);
    expect(exported.dropped).toBe(500);
    await vi.waitFor(() => expect(collector.spans).toHaveLength(1_000), patience);
    exported.send([span]);
    await exported[Symbol.asyncDispose]();
    expect(collector.spans).toHaveLength(1_001);
    expect(exported.dropped).toBe(500);
  },
);

test("spans that the full queue has no room for are dropped and counted", async () => {
  const limits = { maxQueueSize: 3, maxExportBatchSize: 1 };
  const { collector, exported, log } = await setUp({ answer: silence, limits });
  exported.send([span]);
  await vi.waitFor(() => expect(collector.requests).toHaveLength(1), patience);
  exported.send([span, span]);
  exported.send([span, span, span]);
  await vi.waitFor(() => expect(exported.dropped).toBe(2), patience);
  expect(log.events).toEqual([]);
  await exported[Symbol.asyncDispose]();
  // Those on their way and in the queue are lost with the end.
  expect(exported.dropped).toBe(6);
});

test("each outage of the collector is logged once, and its end with the spans that were lost", async () => {
  let status = 401;
  const answer: Answering = (response) => response.writeHead(status).end();
  const { exported, log } = await setUp({ answer });
  const untilDropped = (count: number) =>
    vi.waitFor(() => expect(exported.dropped).toBe(count), patience);
  const untilLogged = (...events: readonly string[]) =>
    vi.waitFor(() => expect(log.events).toEqual(events), patience);
  exported.send([span, span]);
  await untilDropped(2);
  exported.send([span]);
  await untilDropped(3);
  expect(log.events).toEqual(["tracing.failed"]);
  status = 200;
  exported.send([span]);
  await untilLogged("tracing.failed", "tracing.recovered");
  expect(log.factsOf("tracing.recovered")).toEqual([{ dropped: 3 }]);
  status = 400;
  exported.send([span]);
  await untilDropped(4);
  await untilLogged("tracing.failed", "tracing.recovered", "tracing.failed");
  await exported[Symbol.asyncDispose]();
});

test("a collector that does not answer keeps the end waiting for a limited time", async () => {
  const { collector, exported, waits } = await setUp({ answer: silence });
  exported.send([span]);
  await vi.waitFor(() => expect(collector.requests).toHaveLength(1), patience);
  await exported[Symbol.asyncDispose]();
  expect(waits).toEqual([flushTimeoutMs]);
});

test("the last export is given up with the worker", async () => {
  const { exported } = await setUp({ answer: () => undefined, giveUp: AbortSignal.abort() });
  exported.send([span]);
  const startMs = performance.now();
  await exported[Symbol.asyncDispose]();
  expect(performance.now() - startMs).toBeLessThan(flushTimeoutMs);
});

test("an end of the thread is logged, and fails nothing", async () => {
  const { exported, log } = await setUp();
  exported.send([null as unknown as Span]);
  await vi.waitFor(() => expect(exported.dropped).toBe(1), patience);
  exported.send([span]);
  expect(exported.dropped).toBe(2);
  await exported[Symbol.asyncDispose]();
  expect(log.events).toEqual(["tracing.failed"]);
});

test("a span arrives whatever options the process has", { tags: "full" }, async () => {
  const collector = await startCollector();
  onTestFinished(() => collector[Symbol.asyncDispose]());
  const worker = import.meta.resolve("../../../worker/");
  const running = evaluated(`
    import { systemClock } from "${worker}support/clock.ts";
    import { SpanExport } from "${worker}telemetry/tracing/span-export.ts";
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: "${collector.endpoint}" };
    const settings = { batch: ${JSON.stringify(batch)}, resource: {} };
    const parts = { clock: systemClock, log: {}, giveUp: new AbortController().signal };
    new SpanExport(settings, environment, parts).send([${JSON.stringify(span)}]);
    // A thread keeps no process alive.
    process.stdin.resume();`);
  const ended = running.catch(() => undefined);
  await vi
    .waitFor(() => expect(collector.spans).toHaveLength(1), patience)
    .finally(async () => {
      running.child.kill();
      await ended;
    });
});
