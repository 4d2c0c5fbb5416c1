/** Where the phases of a call stand on an axis. */
import type { CallView, PhaseView } from "../../worker/console/api.ts";

/** A span of time that bars share: in milliseconds since 1970, or since each call's receipt. */
export interface Axis {
  readonly startMs: number;
  readonly endMs: number;
  /** Whether it is the same time for all; else each bar begins at its call's receipt. */
  readonly isCommon: boolean;
}

/** A part of a bar; places and widths are shares of the axis, from 0 to 1. */
export interface Segment {
  readonly step: string;
  readonly start: number;
  readonly width: number;
  readonly durationMs: number;
  readonly isRunning: boolean;
}

/** The time to now or to the end of a call. */
export function elapsedMs(call: CallView, nowMs: number): number {
  return call.durationMs ?? Math.max(nowMs - call.receivedAtMs, 0);
}

/**
 * An axis for calls: a common one begins with the first call and ends with the last; another one is
 * as long as the longest ended call, since what hangs would make all others too short to be seen.
 */
export function axisOf(calls: readonly CallView[], nowMs: number, isCommon: boolean): Axis {
  const ended = calls.filter(({ durationMs }) => durationMs !== null);
  if (!isCommon && ended.length > 0 && ended.length < calls.length) {
    return axisOf(ended, nowMs, false);
  }
  if (calls.length === 0) return { startMs: 0, endMs: 1, isCommon };
  const origin = (call: CallView): number => (isCommon ? call.receivedAtMs : 0);
  const startMs = Math.min(...calls.map(origin));
  const endMs = Math.max(...calls.map((call) => origin(call) + elapsedMs(call, nowMs)));
  return { startMs, endMs: Math.max(endMs, startMs + 1), isCommon };
}

/** The phases of a call on an axis. */
export function segmentsOf(call: CallView, axis: Axis, nowMs: number): readonly Segment[] {
  const span = axis.endMs - axis.startMs;
  const origin = axis.isCommon ? call.receivedAtMs - axis.startMs : 0;
  return call.phases.map((phase) => {
    const durationMs = phaseMs(call, phase, nowMs);
    return {
      step: phase.step,
      start: share((origin + phase.startMs) / span),
      width: share(durationMs / span),
      durationMs,
      isRunning: phase.endMs === null && call.durationMs === null,
    };
  });
}

/** How long a phase took, or takes until now. */
export function phaseMs(call: CallView, phase: PhaseView, nowMs: number): number {
  return Math.max((phase.endMs ?? elapsedMs(call, nowMs)) - phase.startMs, 0);
}

function share(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}
