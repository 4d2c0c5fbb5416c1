/**
 * Exports spans by a thread, which alone loads OpenTelemetry: no batch, retry or defect of it keeps
 * a call or the end of the process waiting.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { type EventLog, logEvent } from "../log-event.ts";
import type { Span, SpanAttributes } from "./span.ts";

/** Deliveries whose spans the thread has not read; those of further ones are dropped. */
const maxUnread = 1_000;
/** Milliseconds for the last export. */
export const flushTimeoutMs = 2_000;
/** Of the thread, in lists of the threads of the process. */
const threadName = "traces";
/** Megabytes of memory of the thread. */
const maxMemoryMb = 128;

/** The limits of batches, as OpenTelemetry's `OTEL_BSP_*` have them. */
export interface BatchLimits {
  readonly scheduledDelayMillis: number;
  readonly exportTimeoutMillis: number;
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
}

/** What the thread needs besides its environment. */
export interface ExportSettings {
  readonly batch: BatchLimits;
  /** Of this worker; the environment may replace them. */
  readonly resource: SpanAttributes;
}

/** What the thread is sent. */
export type ExportRequest = { readonly spans: readonly Span[] } | "flush";

/** What the thread sends. */
export type ExportReport =
  /** It has read one request; the full queue has dropped this many of its spans. */
  | { readonly kind: "read"; readonly dropped: number }
  | { readonly kind: "exported"; readonly spans: number }
  /** A batch is lost. */
  | { readonly kind: "failed"; readonly spans: number; readonly reason: string }
  /** Nothing is left to export. */
  | { readonly kind: "flushed" };

/** Services of an export. */
export interface ExportParts {
  readonly clock: Pick<Clock, "sleep">;
  readonly log: EventLog<"info" | "warn">;
  /** Ends the wait for the last export early. */
  readonly giveUp: AbortSignal;
}

/** The owner disposes it after the last delivery. */
export class SpanExport implements AsyncDisposable {
  readonly #parts: ExportParts;
  readonly #thread: Worker;
  readonly #flushed = Promise.withResolvers<void>();
  #unread = 0;
  /** Spans that the thread has neither exported nor dropped. */
  #pending = 0;
  #dropped = 0;
  /** Spans that were dropped before the collector failed; undefined while it does not. */
  #droppedBefore: number | undefined;
  #hasEnded = false;

  /** @param environment the standard variables of the exporter, with what they hold secret */
  constructor(
    settings: ExportSettings,
    environment: Readonly<Record<string, string>>,
    parts: ExportParts,
  ) {
    this.#parts = parts;
    // Compiled code loads the compiled thread, source loads source.
    const file = new URL(`./export-thread${extname(import.meta.url)}`, import.meta.url);
    const resourceLimits = { maxOldGenerationSizeMb: maxMemoryMb };
    this.#thread = new Worker(file, {
      ...{ workerData: settings, env: environment, resourceLimits, name: threadName },
      // Some options of the process, such as --input-type, let no thread start.
      execArgv: [],
    });
    this.#thread.on("message", (report: ExportReport) => this.#hear(report));
    this.#thread.on("error", (error: Error) => this.#fail(error.message));
    this.#thread.on("exit", () => this.#end());
    this.#thread.unref();
  }

  /** Spans that were not exported and will not be. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Neither throws nor waits; drops the spans where the thread does not keep up. */
  send(spans: readonly Span[]): void {
    if (this.#hasEnded || this.#unread >= maxUnread) {
      this.#dropped += spans.length;
      return;
    }
    this.#unread++;
    this.#pending += spans.length;
    this.#thread.postMessage({ spans } satisfies ExportRequest);
  }

  /** Exports what is left within {@link flushTimeoutMs}. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { clock, giveUp } = this.#parts;
    this.#thread.postMessage("flush" satisfies ExportRequest);
    await settlesWithin(this.#flushed.promise, flushTimeoutMs, clock, giveUp);
    await this.#thread.terminate();
  }

  #hear(report: ExportReport): void {
    switch (report.kind) {
      case "read":
        this.#unread--;
        this.#drop(report.dropped);
        return;
      case "exported":
        this.#pending -= report.spans;
        this.#recover();
        return;
      case "failed":
        this.#fail(report.reason);
        this.#drop(report.spans);
        return;
      case "flushed":
        this.#flushed.resolve();
    }
  }

  #end(): void {
    this.#hasEnded = true;
    this.#drop(this.#pending);
    this.#flushed.resolve();
  }

  #drop(spans: number): void {
    this.#pending -= spans;
    this.#dropped += spans;
  }

  #fail(reason: string): void {
    if (this.#droppedBefore === undefined) logEvent(this.#parts.log, "tracing.failed", { reason });
    this.#droppedBefore ??= this.#dropped;
  }

  #recover(): void {
    if (this.#droppedBefore === undefined) return;
    const dropped = this.#dropped - this.#droppedBefore;
    logEvent(this.#parts.log, "tracing.recovered", { dropped });
    this.#droppedBefore = undefined;
  }
}
