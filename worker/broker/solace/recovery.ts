/**
 * Asking again for what the broker refused or took away.
 */
import { backoffDelays } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import type { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { subcodeNameOf } from "./library.ts";

/** Milliseconds between attempts to get what the broker refuses: bounds of the first and of the last delays. */
const retryDelays = { baseMs: 200, capMs: 30_000 } as const;

/** Milliseconds that a queue must have been had for the delays to start from the beginning again. */
const steadyMs = 10_000;

/** What is to be had of a queue. */
export interface RecoveryParts {
  /** Whether something of it is missing. */
  isLacking(): boolean;
  /** Gets what is missing. Throws BrokerError. */
  complete(): Promise<void>;
  /** Which queue, for the log. */
  facts(): object;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

/** Of one queue. Tries after a delay, until everything is had or the signal of the recovery aborts. */
export class Recovery {
  readonly #parts: RecoveryParts;
  #delays = freshDelays();
  #completeAtMs = -Infinity;
  /** Ends the recovery that was begun last, unless that is over. */
  #underWay: AbortSignal | undefined;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  get isUnderWay(): boolean {
    return this.#underWay?.aborted === false;
  }

  /** Says that nothing is missing. */
  completed(): void {
    this.#completeAtMs = this.#parts.clock.monotonicMs();
  }

  /** Begins to ask again, since something could not be had because of `first`; nothing while that is under way. Never rejects. */
  async begin(first: BrokerError, signal: AbortSignal): Promise<void> {
    if (this.isUnderWay || signal.aborted) return;
    const { clock, log, facts } = this.#parts;
    this.#underWay = signal;
    if (clock.monotonicMs() - this.#completeAtMs >= steadyMs) this.#delays = freshDelays();
    try {
      await this.#retry(first, signal);
      log.info(facts(), "queue can be used again");
    } catch {
      // Left, or gone with the connection.
    } finally {
      if (this.#underWay === signal) this.#underWay = undefined;
    }
  }

  async #retry(first: BrokerError, signal: AbortSignal): Promise<void> {
    const { isLacking, complete, facts, clock, log } = this.#parts;
    for (let failure = first; isLacking();) {
      const delayMs = Math.round(this.#delays.next().value);
      const code = subcodeNameOf(failure.cause);
      log.warn({ ...facts(), code, delayMs, err: failure }, "queue cannot be used");
      await clock.sleep(delayMs, signal);
      try {
        await complete();
      } catch (error) {
        failure = error as BrokerError;
      }
      signal.throwIfAborted();
    }
  }
}

function freshDelays(): Generator<number, never, void> {
  return backoffDelays({ ...retryDelays, random: Math.random });
}
