/**
 * The thread that exports spans, without a worker.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import type { Span } from "../../../worker/telemetry/tracing/span.ts";
import { SpanExport, flushTimeoutMs } from "../../../worker/telemetry/tracing/span-export.ts";
import { patience } from "../../support/patience.ts";
import { type Answering, silence, startCollector } from "../../support/tracing/collector.ts";
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

const batch = {
  scheduledDelayMillis: 10,
  exportTimeoutMillis: 30_000,
  maxQueueSize: 100_000,
  maxExportBatchSize: 100_000,
};

/** An export to a collector, on a clock that tells how long it was to wait and does not. */
async function setUp(answer?: Answering, giveUp = new AbortController().signal) {
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
  const exported = new SpanExport({ batch, resource: {} }, environment, { clock, log, giveUp });
  return { collector, exported, log, waits };
}

test("a span arrives as it was", async () => {
  const { collector, exported } = await setUp();
  exported.send([span]);
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

test("spans of deliveries that the thread does not keep up with are dropped", async () => {
  const { collector, exported } = await setUp();
  for (let call = 0; call < 1_500; call++) exported.send([span]);
  await vi.waitFor(() => expect(collector.spans).toHaveLength(1_000), patience);
  exported.send([span]);
  await exported[Symbol.asyncDispose]();
  expect(collector.spans).toHaveLength(1_001);
});

test("a collector that does not answer keeps the end waiting for a limited time", async () => {
  const { collector, exported, waits } = await setUp(silence);
  exported.send([span]);
  await vi.waitFor(() => expect(collector.requests).toHaveLength(1), patience);
  await exported[Symbol.asyncDispose]();
  expect(waits).toEqual([flushTimeoutMs]);
});

test("the last export is given up with the worker", async () => {
  const { exported } = await setUp(() => undefined, AbortSignal.abort());
  exported.send([span]);
  const startMs = performance.now();
  await exported[Symbol.asyncDispose]();
  expect(performance.now() - startMs).toBeLessThan(flushTimeoutMs);
});

test("an end of the thread is logged, and fails nothing", async () => {
  const { exported, log } = await setUp();
  exported.send([null as unknown as Span]);
  await vi.waitFor(() => expect(log.events).toEqual(["tracing.failed"]), patience);
  exported.send([span]);
  await exported[Symbol.asyncDispose]();
  expect(log.events).toHaveLength(1);
});
