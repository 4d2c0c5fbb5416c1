/**
 * Places in traces, as the W3C trace context carries them (https://www.w3.org/TR/trace-context/).
 */
import { randomBytes } from "node:crypto";

/** A span, as others refer to it. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether its trace is recorded. */
  readonly isSampled: boolean;
}

const sampledFlag = 1;

/** @param traceparent a valid one, as the protocol reads it from messages */
export function parseTraceparent(traceparent: string): TraceContext {
  const [, traceId = "", spanId = "", flags = ""] = traceparent.split("-");
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & sampledFlag) !== 0 };
}

/** As version 00 has it. */
export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-0${isSampled ? sampledFlag : 0}`;
}

export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}

export function newSpanId(): string {
  return randomBytes(8).toString("hex");
}
