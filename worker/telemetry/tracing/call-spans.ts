/**
 * The spans of one delivery: one for all of it, and below it one for each step.
 *
 * Names and attributes are those of OpenTelemetry's conventions for messaging; those of the worker
 * alone begin with `str.`. No attribute holds what a caller or a tool chooses.
 */
import type { Clock } from "../../support/clock.ts";
import type {
  CallEnding,
  CallFollower,
  CallStep,
  CallTrace,
  ReceivedCall,
  RunFacts,
} from "../call-follower.ts";
import type { Sampler } from "./sampler.ts";
import type { Span, SpanAttributes } from "./span.ts";
import {
  type TraceContext,
  formatTraceparent,
  newSpanId,
  newTraceId,
  parseTraceparent,
} from "./trace-context.ts";

/** What spans of all calls have in common. */
export interface SpanParts {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly sampler: Sampler;
  /** The broker, as OpenTelemetry calls its kind. */
  readonly messagingSystem: string;
  /** Takes the spans of a delivery that has ended. Neither throws nor waits. */
  readonly send: (spans: readonly Span[]) => void;
}

/** Endings without an answer that are no failures. */
const harmless: ReadonlySet<string> = new Set(["ok", "requeued", "duplicate"]);

interface OpenStep {
  readonly step: CallStep;
  readonly spanId: string;
  readonly startMs: number;
}

/** Follows one delivery, and sends its spans at its end if its trace is recorded. */
export class CallSpans implements CallFollower, CallTrace {
  readonly traceId: string;
  readonly isSampled: boolean;
  readonly #parts: SpanParts;
  readonly #parent: TraceContext | undefined;
  readonly #spanId = newSpanId();
  /** Ids of steps that have one before they begin. */
  readonly #ids = new Map<CallStep, string>();
  readonly #spans: Span[] = [];
  readonly #startMs: number;
  readonly #startMonotonicMs: number;
  #step: OpenStep;
  #tool = "";
  #attributes: SpanAttributes;
  #stepAttributes: SpanAttributes = {};

  constructor(parts: SpanParts, { traceparent, queue, deliveryCount }: ReceivedCall) {
    const { clock, sampler, messagingSystem } = parts;
    this.#parts = parts;
    this.#startMs = clock.nowMs();
    this.#startMonotonicMs = clock.monotonicMs();
    this.#parent = traceparent === undefined ? undefined : parseTraceparent(traceparent);
    this.traceId = this.#parent?.traceId ?? newTraceId();
    this.isSampled = sampler(this.traceId, this.#parent);
    this.#step = { step: "receive", spanId: newSpanId(), startMs: this.#startMs };
    this.#attributes = {
      "messaging.system": messagingSystem,
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      ...(queue !== undefined && { "messaging.destination.name": queue }),
      "str.delivery_count": deliveryCount,
    };
  }

  get trace(): CallTrace {
    return this;
  }

  traceparentOf(step: CallStep): string {
    const spanId = this.#step.step === step ? this.#step.spanId : this.#idOf(step);
    return formatTraceparent({ traceId: this.traceId, spanId, isSampled: this.isSampled });
  }

  enter(step: CallStep): void {
    const nowMs = this.#nowMs();
    this.#leave(nowMs);
    const spanId = this.#idOf(step);
    this.#ids.delete(step);
    this.#step = { step, spanId, startMs: nowMs };
  }

  resolved(tool: string): void {
    this.#tool = tool;
    this.#set({ "str.tool": tool });
  }

  under(profile: string): void {
    this.#set({ "str.profile": profile });
  }

  ran({ start, cpuMs }: RunFacts): void {
    this.#set({ "str.start": start });
    if (cpuMs !== undefined) this.#stepAttributes = { "str.cpu_ms": cpuMs };
  }

  limitReached(limit: string): void {
    this.#set({ "str.limit": limit });
  }

  end({ outcome, settlement }: CallEnding): void {
    if (!this.isSampled) return;
    const endMs = this.#nowMs();
    this.#leave(endMs);
    const isFailed = !harmless.has(outcome);
    this.#set({ "str.outcome": outcome, "str.settlement": settlement });
    if (isFailed) this.#set({ "error.type": outcome });
    this.#spans.push({
      name: this.#tool === "" ? "process" : `process ${this.#tool}`,
      kind: "consumer",
      traceId: this.traceId,
      spanId: this.#spanId,
      parentId: this.#parent?.spanId,
      isParentRemote: true,
      startMs: this.#startMs,
      endMs,
      attributes: this.#attributes,
      isFailed,
    });
    this.#parts.send(this.#spans);
  }

  #leave(endMs: number): void {
    if (!this.isSampled) return;
    const { step, spanId, startMs } = this.#step;
    const isPublish = step === "publish";
    this.#spans.push({
      name: step,
      kind: isPublish ? "producer" : "internal",
      traceId: this.traceId,
      spanId,
      parentId: this.#spanId,
      isParentRemote: false,
      startMs,
      endMs,
      attributes: {
        ...(isPublish && { "messaging.system": this.#parts.messagingSystem }),
        ...(isPublish && { "messaging.operation.name": "publish" }),
        ...(isPublish && { "messaging.operation.type": "send" }),
        ...this.#stepAttributes,
      },
      isFailed: false,
    });
    this.#stepAttributes = {};
  }

  #idOf(step: CallStep): string {
    const id = this.#ids.get(step) ?? newSpanId();
    this.#ids.set(step, id);
    return id;
  }

  #set(attributes: SpanAttributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  /** Epoch milliseconds, never before an earlier call. */
  #nowMs(): number {
    return this.#startMs + this.#parts.clock.monotonicMs() - this.#startMonotonicMs;
  }
}
