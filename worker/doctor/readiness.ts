/**
 * The wait for a sandbox that is made ahead of an attack's call.
 */
import type { IdleStartMode } from "../sandbox/profile.ts";
import type { Clock } from "../support/clock.ts";
import type { AttackedWorker, Readiness } from "./attacks/attacked-worker.ts";

/**
 * Milliseconds until a sandbox waits: an import that attacks takes ten seconds at most on an idle
 * host.
 */
const readyTimeoutMs = 60_000;
/** Milliseconds of each later wait, once {@link maxTimeouts} waits have run out. */
const laterTimeoutMs = 2_000;
/**
 * Waits that may run out before later ones are short: a host that makes no sandboxes would take an
 * hour to attack.
 */
const maxTimeouts = 2;
/**
 * Failed attempts in a row after which nothing waits any more: the pauses between attempts grow.
 */
const maxAttempts = 4;
/** Milliseconds between two probes. */
const probeMs = 2;

/** What a wait came to. */
export interface Ready {
  /** Whether a sandbox waits. */
  readonly isReady: boolean;
  /** How sandboxes of the tool are made; undefined when none can be made ahead of a call. */
  readonly startMode: IdleStartMode | undefined;
  /** Why none waits although there is a start mode. */
  readonly problem: string | undefined;
}

const noStartMode: Ready = { isReady: false, startMode: undefined, problem: undefined };

/** Waits for sandboxes of one worker's tools. All waits together are bounded. */
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

  /** Has a sandbox of this tool wait, and of no other. Rejects with the signal's reason. */
  async until(toolName: string, signal: AbortSignal): Promise<Ready> {
    const tool = this.#worker.catalog.resolve(toolName);
    if (tool === undefined || tool.start === "cold") return noStartMode;
    this.#worker.starts.follow([tool]);
    const timeoutMs = this.#timeouts < maxTimeouts ? readyTimeoutMs : laterTimeoutMs;
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    let last: Readiness;
    do {
      last = this.#worker.readinessOf(toolName);
      const { waiting, startMode, failure } = last;
      if (startMode === undefined) return noStartMode;
      if (waiting > 0) return { isReady: true, startMode, problem: undefined };
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
