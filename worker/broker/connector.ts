/**
 * When to try to connect, and when to stop trying.
 */
import { backoffDelays } from "../support/backoff.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { createRepeatFilter } from "../support/repeat-filter.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { BrokerError } from "./broker.ts";
import { type BrokerLog, reasonOf } from "./log.ts";

/** Milliseconds that a connection must have lived for its loss to reset the delays. */
const steadyMs = 10_000;

export interface ConnectorOptions {
  /** Attempts per outage, the first connection included; 0 tries for ever. */
  readonly maxAttempts: number;
  readonly backoff: { readonly baseMs: number; readonly capMs: number };
  readonly log: BrokerLog;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export class Connector {
  readonly #kind: string;
  readonly #options: ConnectorOptions;
  readonly #clock: Clock;
  #delays: Generator<number, never, void>;
  #hasConnected = false;

  constructor(kind: string, options: ConnectorOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#delays = this.#freshDelays();
  }

  /**
   * Throws the last error of `open` when no attempt is left. A refusal is final before the first
   * connection only: the broker may accept again what it accepted once.
   */
  async connect<T>(open: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const broker = this.#kind;
    const { log, maxAttempts } = this.#options;
    const isNews = createRepeatFilter(this.#clock);
    for (let attempt = 1; ; attempt++) {
      try {
        const opened = await open();
        this.#hasConnected = true;
        logEvent(log, "broker.connected", { broker, attempt });
        return opened;
      } catch (error) {
        signal.throwIfAborted();
        if (this.#isFinal(error) || attempt === maxAttempts) throw error;
        const delayMs = Math.round(this.#delays.next().value);
        const reason = reasonOf(error);
        const facts = { broker, attempt, delayMs, reason };
        if (isNews(reason)) logEvent(log, "broker.connect_failed", facts);
        await this.#clock.sleep(delayMs, signal);
      }
    }
  }

  async pauseAfterLoss(livedMs: number, signal: AbortSignal): Promise<void> {
    if (livedMs >= steadyMs) this.#delays = this.#freshDelays();
    await this.#clock.sleep(this.#delays.next().value, signal);
  }

  #isFinal(error: unknown): boolean {
    if (!(error instanceof BrokerError)) return true;
    return !error.transient && !this.#hasConnected;
  }

  #freshDelays(): Generator<number, never, void> {
    const random = this.#options.random ?? Math.random;
    return backoffDelays({ ...this.#options.backoff, random });
  }
}
