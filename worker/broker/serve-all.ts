/**
 * Serving the tools that a session starts with.
 */
import type { Clock } from "../support/clock.ts";
import { BrokerError } from "./broker.ts";

/** Milliseconds in which no further tool was served, for those that are not yet to be served later. */
const slowAfterMs = 3_000;

/** What serving a tool takes. */
export interface ServeAllParts {
  /** Throws BrokerError, or the signal's reason. */
  serve(tool: string, signal: AbortSignal): Promise<void>;
  /** Has a tool served that could not be, as soon as it can. */
  serveLater(tool: string, failure: BrokerError): void;
  readonly clock: Pick<Clock, "sleep" | "monotonicMs">;
}

/**
 * Serves several tools at once. Those that cannot be served, and those that are slow after others were served, are served
 * later: no queue keeps the calls of another waiting. Throws BrokerError when none can be served, one that is transient if
 * any is; or the signal's reason.
 */
export async function serveAll(
  tools: readonly string[],
  parts: ServeAllParts,
  signal: AbortSignal,
): Promise<void> {
  const failures = new Map<string, BrokerError>();
  let lastServedAtMs = parts.clock.monotonicMs();
  const impatience = new AbortController();
  const over = AbortSignal.any([signal, impatience.signal]);
  const attempts = tools.map(async (tool) => {
    try {
      await parts.serve(tool, over);
      lastServedAtMs = parts.clock.monotonicMs();
    } catch (error) {
      signal.throwIfAborted();
      failures.set(tool, error as BrokerError);
      throw error;
    }
  });
  const allEnded = Promise.allSettled(attempts);
  const done = new AbortController();
  const slow = async (): Promise<void> => {
    await Promise.any(attempts);
    for (;;) {
      const leftMs = lastServedAtMs + slowAfterMs - parts.clock.monotonicMs();
      if (leftMs <= 0) break;
      await parts.clock.sleep(leftMs, done.signal);
    }
    impatience.abort(new BrokerError("The broker has not answered yet", { transient: true }));
  };
  // Where no attempt succeeds, all are waited for.
  void slow().catch(() => {});
  await allEnded;
  done.abort();
  signal.throwIfAborted();
  const [first, ...others] = failures.values();
  if (first !== undefined && failures.size === tools.length) throw unserved(first, others);
  for (const [tool, failure] of failures) parts.serveLater(tool, failure);
}

function unserved(first: BrokerError, others: readonly BrokerError[]): BrokerError {
  if (others.length === 0) return first;
  const told = [first, ...others].find(({ transient }) => transient) ?? first;
  return new BrokerError(`None of ${others.length + 1} tools can be served. ${told.message}`, {
    cause: told.cause,
    transient: told.transient,
  });
}
