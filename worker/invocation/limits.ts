/**
 * The times of one call: what the tool gets, and when nobody waits for its answer any more.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Invocation } from "../protocol/invocation.ts";
import { agentPatienceSeconds } from "../protocol/limits.ts";

/** Milliseconds before the agent gives up that are kept for stopping the tool and answering. */
const answerReserveMs = 5_000;

/** Thrown inside the invoker for a call whose time is over. */
export class TimeLimitReached extends Error {}

/** Times of a call, in milliseconds. */
export interface CallTimes {
  /** What the tool is granted. */
  readonly limitMs: number;
  /** Epoch milliseconds at which the agent gives up waiting. */
  readonly deadlineMs: number;
}

/** What nobody who calls decides, in seconds. */
export interface TimeBounds {
  /** The limit when neither manifest nor request says one. */
  readonly defaultSeconds: number;
  /** No limit is above it. */
  readonly maxSeconds: number;
}

/**
 * The tool's limit is the smaller of what manifest and request say, the default when neither does,
 * and never above the bound. The agent waits for what it asked and 10 seconds more (design document
 * §7), counted from when it sent the request.
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
    limitMs: limitSeconds * 1000,
    // Whole: timers take no fractions, and neither callers' clocks nor their limits are bound to be
    // whole.
    deadlineMs: Math.floor(invocation.sentAtMs + patienceSeconds * 1000),
  };
}

/**
 * What is left of the limit for a call that starts now, so that its answer still finds the agent
 * waiting.
 */
export function remainingLimitMs(times: CallTimes, nowMs: number): number {
  return Math.min(times.limitMs, times.deadlineMs - nowMs - answerReserveMs);
}
