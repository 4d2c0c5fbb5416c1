/**
 * Opens tracing: nothing of it runs, and nothing is loaded, where no collector is configured.
 */
import type { Clock } from "../../support/clock.ts";
import type { CallFollower, ReceivedCall } from "../call-follower.ts";
import { CallSpans } from "./call-spans.ts";
import { type SamplerName, samplerOf } from "./sampler.ts";
import type { SpanAttributes } from "./span.ts";
import { type BatchLimits, type ExportParts, SpanExport } from "./span-export.ts";

/** How calls are traced. */
export interface TracingConfig {
  /** OpenTelemetry's variables, some of them secret, which the exporter reads for itself. */
  readonly environment: Readonly<Record<string, string>>;
  readonly sampler: {
    readonly name: SamplerName;
    /** The part of the traces that `traceidratio` records, 0 to 1. */
    readonly ratio: number;
  };
  readonly batch: BatchLimits;
}

/** This worker, in its spans. */
export interface TracedWorker {
  readonly messagingSystem: string;
  readonly resource: SpanAttributes;
}

/** Parts of tracing. */
export interface TracingParts extends ExportParts {
  readonly clock: Clock;
}

/** The owner disposes it after the last delivery, which exports what is left. */
export interface Tracing extends AsyncDisposable {
  /** Spans that were not exported and will not be. */
  readonly dropped: number;
  /** Follows a delivery that has just been received. */
  follow(received: ReceivedCall): CallFollower;
}

/** Starts a thread that exports spans. */
export function openTracing(
  { environment, sampler: { name, ratio }, batch }: TracingConfig,
  { messagingSystem, resource }: TracedWorker,
  parts: TracingParts,
): Tracing {
  const exported = new SpanExport({ batch, resource }, environment, parts);
  const spanParts = {
    clock: parts.clock,
    sampler: samplerOf(name, ratio),
    messagingSystem,
    send: exported.send.bind(exported),
  };
  return {
    get dropped() {
      return exported.dropped;
    },
    follow: (received) => new CallSpans(spanParts, received),
    [Symbol.asyncDispose]: () => exported[Symbol.asyncDispose](),
  };
}
