/**
 * Relays statuses from a tool to the agent at a bounded rate.
 */
import type { Clock } from "../../support/clock.ts";
import type { StatusDetails } from "../../protocol/messages/status-details.ts";
import { settlesWithin } from "../../support/timeout.ts";

/** Statuses that pass without delay. */
export const statusBurst = 50;
/** Statuses per second after the burst. */
export const statusesPerSecond = 10;
/** Milliseconds for which the answer waits for the last statuses. */
const flushTimeoutMs = 5_000;

/** A status on its way. */
export interface RelayedStatus {
  readonly text: string;
  readonly details?: StatusDetails | undefined;
}

/** Counts of a call's statuses. */
export interface RelayReport {
  readonly published: number;
  /** Statuses beyond the rate, replaced by a later one. */
  readonly coalesced: number;
}

/**
 * A token bucket for the statuses of one call. Beyond the rate the newest text replaces the pending
 * one, and each detail the pending one of its kind, so that the last of each is always published.
 * Keeps the order.
 */
export class StatusRelay {
  readonly #publish: (status: RelayedStatus) => Promise<void>;
  readonly #clock: Clock;
  #tokens = statusBurst;
  #refilledAtMs: number;
  #pending: RelayedStatus | undefined;
  #timer: NodeJS.Timeout | undefined;
  #unpublished = 0;
  #last: Promise<void> = Promise.resolve();
  /** True once the answer is published: no status follows it. */
  #isOver = false;
  #published = 0;
  #coalesced = 0;

  /** @param publish logs its own rejections, which do not stop later statuses */
  constructor(publish: (status: RelayedStatus) => Promise<void>, clock: Clock) {
    this.#publish = publish;
    this.#clock = clock;
    this.#refilledAtMs = clock.monotonicMs();
  }

  /** Never waits, never throws. */
  push(status: RelayedStatus): void {
    if (this.#pending !== undefined) {
      const details = { ...this.#pending.details, ...status.details };
      this.#pending = { text: status.text, details };
      this.#coalesced++;
      return;
    }
    this.#refill();
    if (this.#tokens >= 1 && this.#unpublished < statusBurst) {
      this.#send(status);
      return;
    }
    this.#pending = status;
    this.#timer = setTimeout(() => this.#sendPending(), 1000 / statusesPerSecond);
  }

  /** Sends the pending status. Resolves when all are published, or after a bounded time. */
  async finish(): Promise<RelayReport> {
    clearTimeout(this.#timer);
    if (this.#pending !== undefined) this.#send(this.#pending);
    this.#pending = undefined;
    if (this.#unpublished > 0) await settlesWithin(this.#last, flushTimeoutMs, this.#clock);
    this.#isOver = true;
    return { published: this.#published, coalesced: this.#coalesced };
  }

  #sendPending(): void {
    const status = this.#pending;
    this.#pending = undefined;
    if (status !== undefined) this.push(status);
  }

  #send(status: RelayedStatus): void {
    this.#tokens = Math.max(0, this.#tokens - 1);
    this.#unpublished++;
    this.#last = this.#last
      .then(async () => {
        if (this.#isOver) return;
        await this.#publish(status);
        this.#published++;
      })
      .catch(() => undefined)
      .finally(() => this.#unpublished--);
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    const gained = ((nowMs - this.#refilledAtMs) / 1000) * statusesPerSecond;
    this.#tokens = Math.min(statusBurst, this.#tokens + gained);
    this.#refilledAtMs = nowMs;
  }
}
