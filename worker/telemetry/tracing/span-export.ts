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
/** Of the thread, for who looks at the process. */
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

/** What the thread sends: that it has read spans, exported the last, or what went wrong. */
export type ExportReport = "read" | "flushed" | { readonly failure: string };

/** Services of an export. */
export interface ExportParts {
  readonly clock: Pick<Clock, "sleep">;
  readonly log: EventLog<"warn">;
  /** Ends the wait for the last export early. */
  readonly giveUp: AbortSignal;
}

/** The owner disposes it after the last delivery. */
export class SpanExport implements AsyncDisposable {
  readonly #parts: ExportParts;
  readonly #thread: Worker;
  readonly #flushed = Promise.withResolvers<void>();
  #unread = 0;
  #hasFailed = false;

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
    const options = { workerData: settings, env: environment, resourceLimits, name: threadName };
    this.#thread = new Worker(file, options);
    this.#thread.on("message", (report: ExportReport) => this.#hear(report));
    this.#thread.on("error", (error: Error) => this.#fail(error.message));
    this.#thread.on("exit", () => this.#flushed.resolve());
    this.#thread.unref();
  }

  /** Neither throws nor waits; drops the spans where the thread does not keep up. */
  send(spans: readonly Span[]): void {
    if (this.#unread >= maxUnread) return;
    this.#unread++;
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
    if (report === "read") this.#unread--;
    else if (report === "flushed") this.#flushed.resolve();
    else this.#fail(report.failure);
  }

  #fail(reason: string): void {
    if (!this.#hasFailed) logEvent(this.#parts.log, "tracing.failed", { reason });
    this.#hasFailed = true;
  }
}
