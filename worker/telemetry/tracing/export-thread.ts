/**
 * The thread of `span-export.ts`: the one file that knows OpenTelemetry's packages. The exporter
 * and the resource read their standard variables in the thread's environment.
 */
import { parentPort, workerData } from "node:worker_threads";
import { type HrTime, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from "@opentelemetry/sdk-trace";
import type { Span } from "./span.ts";
import type { ExportReport, ExportRequest, ExportSettings } from "./span-export.ts";

const { batch, resource: own } = workerData as ExportSettings;

const scope = { name: "secure-tool-runtime" };
const resource = defaultResource()
  .merge(resourceFromAttributes(own))
  .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }));

const kinds = {
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
  producer: SpanKind.PRODUCER,
} as const;

/** `ExportResultCode.SUCCESS` of `@opentelemetry/core`. */
const succeeded = 0;
/** Longest reason of a failure, in characters. */
const maxReasonLength = 200;

function report(message: ExportReport): void {
  parentPort?.postMessage(message);
}

/** Spans in the processor's queue. */
let queued = 0;

/** Reports how each export ends; a processor would throw failures. */
function reporting(exporter: OTLPTraceExporter): SpanExporter {
  return {
    export: (batched, done) => {
      const spans = batched.length;
      queued -= spans;
      exporter.export(batched, ({ code, error }) => {
        const isExported = (code as number) === succeeded;
        if (isExported) report({ kind: "exported", spans });
        else report({ kind: "failed", spans, reason: reasonOf(error) });
        done({ code: succeeded });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** Whether there is room in the queue, which the processor would not say. */
function enqueue(span: Span): boolean {
  if (queued >= batch.maxQueueSize) return false;
  queued++;
  processor.onEnd(readable(span));
  return true;
}

/** Without what the collector writes, which may quote a header. */
function reasonOf(error: (Error & { readonly code?: unknown }) | undefined): string {
  if (typeof error?.code === "number") return `the collector answers with ${error.code}`;
  return (error?.message ?? "no cause is known").slice(0, maxReasonLength);
}

function readable(span: Span): ReadableSpan {
  const { name, traceId, spanId, parentId, startMs, endMs, attributes } = span;
  const traceFlags = TraceFlags.SAMPLED;
  const parentSpanContext = parentId !== undefined && {
    parentSpanContext: { traceId, spanId: parentId, traceFlags, isRemote: span.isParentRemote },
  };
  return {
    name,
    kind: kinds[span.kind],
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...parentSpanContext,
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status: { code: span.isFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: { ...attributes },
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}

const processor = new BatchSpanProcessor({
  exporter: reporting(new OTLPTraceExporter()),
  ...batch,
});

parentPort?.on("message", (request: ExportRequest) => {
  if (request === "flush") {
    void processor.shutdown().finally(() => report({ kind: "flushed" }));
    return;
  }
  const dropped = request.spans.filter((span) => !enqueue(span)).length;
  report({ kind: "read", dropped });
});
