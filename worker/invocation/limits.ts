/**
 * The time limit of a tool, and the deadline of its caller.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Invocation } from "../protocol/invocation.ts";
import { agentPatienceSeconds } from "../protocol/limits.ts";

/** Milliseconds before the deadline, reserved for stopping the tool and publishing the answer. */
const answerReserveMs = 5_000;

/** Milliseconds for saving outputs, at least: a tool that started late ends near the deadline. */
const leastSavingMs = 5_000;

/** Thrown inside the invoker: the call has reached its time limit. */
export class TimeLimitReached extends Error {}

/** Times of a call, in milliseconds. */
export interface CallTimes {
  /** Time limit of the tool. */
  readonly limitMs: number;
  /** Epoch milliseconds at which the agent stops waiting. */
  readonly deadlineMs: number;
}

/** The operator's bounds, in seconds. */
export interface TimeBounds {
  /** Applies where neither manifest nor request sets a limit. */
  readonly defaultSeconds: number;
  readonly maxSeconds: number;
}

/**
 * The limit is the least of manifest, request and bound, with a default for the first two. The
 * deadline is the requested limit plus 10 seconds after the sending time (design document §7).
 */
export function callTimes(
  tool: Pick<ToolEntry, "timeoutSeconds">,
  invocation: Pick<Invocation, "timeoutSeconds" | "sentAtMs">,
  { defaultSeconds, maxSeconds }: TimeBounds,
): CallTimes {
  const requested = [tool.timeoutSeconds, invocation.timeoutSeconds].filter(
    (value) => value !== undefined,
  );
  const limitSeconds = Math.min(
    maxSeconds,
    ...(requested.length === 0 ? [defaultSeconds] : requested),
  );
  const patienceSeconds = (invocation.timeoutSeconds ?? limitSeconds) + agentPatienceSeconds;
  return {
    // Timers take no fractions; callers' clocks and limits may have them.
    limitMs: Math.floor(limitSeconds * 1000),
    deadlineMs: Math.floor(invocation.sentAtMs + patienceSeconds * 1000),
  };
}

/** Milliseconds for a call that starts now, so that its answer arrives before the deadline. */
export function remainingLimitMs(times: CallTimes, nowMs: number): number {
  return Math.min(times.limitMs, times.deadlineMs - nowMs - answerReserveMs);
}

/**
 * Epoch milliseconds, whole, at which the time limit ends a tool that is about to start: up to the
 * time of its start too early, never too late.
 */
export function toolDeadlineMs(times: CallTimes, nowMs: number): number {
  return Math.floor(nowMs + remainingLimitMs(times, nowMs));
}

/**
 * Sending time of a call that may run until `endMs` by a time limit of its request: then its
 * deadline is no later, however long the call waits. Epoch milliseconds.
 */
export function sendingTimeMs(endMs: number, limitMs: number): number {
  return endMs + answerReserveMs - limitMs - agentPatienceSeconds * 1000;
}

/** Milliseconds for saving outputs from now on, so that the answer arrives before the deadline. */
export function savingLimitMs({ deadlineMs }: CallTimes, nowMs: number): number {
  return Math.max(leastSavingMs, deadlineMs - nowMs - answerReserveMs);
}
