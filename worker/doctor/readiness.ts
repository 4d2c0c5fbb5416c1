/**
 * Waits for an idle sandbox before an attack's call.
 */
import type { IdleStartMode } from "../sandbox/profile.ts";
import type { Clock } from "../support/clock.ts";
import type { AttackedWorker, Readiness } from "./attacks/attacked-worker.ts";

/** Time limit of a wait in milliseconds: an attack at import takes ten seconds on an idle host. */
const readyTimeoutMs = 60_000;
/** Time limit of each wait after {@link maxTimeouts} timeouts, in milliseconds. */
const laterTimeoutMs = 2_000;
/** Timeouts before waits are short: a host without idle sandboxes would take an hour. */
const maxTimeouts = 2;
/** Consecutive failures that end a wait: the pauses between attempts grow. */
const maxAttempts = 4;
/** Milliseconds between two probes. */
const probeMs = 2;

/** The result of a wait. */
export interface Ready {
  /** Whether an idle sandbox is ready. */
  readonly isReady: boolean;
  /** Start mode of the tool's idle sandboxes; undefined when it can have none. */
  readonly startMode: IdleStartMode | undefined;
  /** Why none is ready in spite of a start mode. */
  readonly problem: string | undefined;
}

const noStartMode: Ready = { isReady: false, startMode: undefined, problem: undefined };

/** Waits for idle sandboxes of one worker. All waits together are bounded. */
export class ReadinessWait {
  readonly #worker: Pick<AttackedWorker, "catalog" | "starts" | "readinessOf">;
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  #timeouts = 0;

  constructor(
    worker: Pick<AttackedWorker, "catalog" | "starts" | "readinessOf">,
    clock: Pick<Clock, "monotonicMs" | "sleep">,
  ) {
    this.#worker = worker;
    this.#clock = clock;
  }

  /** Waits for an idle sandbox of this tool, and drops those of others. Rejects on abort. */
  async until(toolName: string, signal: AbortSignal): Promise<Ready> {
    const tool = this.#worker.catalog.resolve(toolName);
    if (tool === undefined || tool.start === "cold") return noStartMode;
    this.#worker.starts.follow([tool]);
    const timeoutMs = this.#timeouts < maxTimeouts ? readyTimeoutMs : laterTimeoutMs;
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    let last: Readiness;
    do {
      last = this.#worker.readinessOf(toolName);
      const { idle, startMode, failure } = last;
      if (startMode === undefined) return noStartMode;
      if (idle > 0) return { isReady: true, startMode, problem: undefined };
      if (failure !== undefined && failure.attempts >= maxAttempts) return notReady(last);
      await this.#clock.sleep(probeMs, signal);
    } while (this.#clock.monotonicMs() < untilMs);
    this.#timeouts++;
    return notReady(last);
  }
}

function notReady({ startMode, failure }: Readiness): Ready {
  const error = failure?.error;
  const problem = error instanceof Error ? error.message : "it takes too long";
  return { isReady: false, startMode, problem };
}
