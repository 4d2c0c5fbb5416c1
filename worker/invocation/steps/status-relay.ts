/**
 * Statuses on their way from a tool to the agent, at a pace that neither the broker nor a user
 * minds.
 */
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/within.ts";

/** Statuses that pass at once. */
export const statusBurst = 50;
/** Statuses a second after that. */
export const statusesPerSecond = 10;
/**
 * Milliseconds that the last statuses of a call may take to be published before the answer goes out
 * without them.
 */
const flushTimeoutMs = 5_000;

/** What became of a call's statuses. */
export interface RelayReport {
  readonly published: number;
  /** Texts that were replaced by a later one, because they came too fast. */
  readonly coalesced: number;
}

/**
 * A token bucket for the statuses of one call. What comes too fast is coalesced: the newest text
 * waits for its turn and replaces one that waits already, so the last status is always delivered.
 * Order is kept.
 */
export class StatusRelay {
  readonly #publish: (text: string) => Promise<void>;
  readonly #clock: Clock;
  #tokens = statusBurst;
  #refilledAtMs: number;
  #pending: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #unpublished = 0;
  #last: Promise<void> = Promise.resolve();
  /** Set when the answer goes out: no status may come after it. */
  #isOver = false;
  #published = 0;
  #coalesced = 0;

  /**
   * @param publish sends one status; a rejection is the publisher's to log and does not stop the
   *   others
   */
  constructor(publish: (text: string) => Promise<void>, clock: Clock) {
    this.#publish = publish;
    this.#clock = clock;
    this.#refilledAtMs = clock.monotonicMs();
  }

  /** Takes a status. Never waits, never throws. */
  push(text: string): void {
    if (this.#pending !== undefined) {
      this.#pending = text;
      this.#coalesced++;
      return;
    }
    this.#refill();
    if (this.#tokens >= 1 && this.#unpublished < statusBurst) {
      this.#send(text);
      return;
    }
    this.#pending = text;
    this.#timer = setTimeout(() => this.#sendPending(), 1000 / statusesPerSecond);
  }

  /**
   * Sends the status that still waits and resolves when all are published, or after a bounded time.
   */
  async finish(): Promise<RelayReport> {
    clearTimeout(this.#timer);
    if (this.#pending !== undefined) this.#send(this.#pending);
    this.#pending = undefined;
    if (this.#unpublished > 0) await settlesWithin(this.#last, flushTimeoutMs, this.#clock);
    this.#isOver = true;
    return { published: this.#published, coalesced: this.#coalesced };
  }

  #sendPending(): void {
    const text = this.#pending;
    this.#pending = undefined;
    if (text !== undefined) this.push(text);
  }

  #send(text: string): void {
    this.#tokens = Math.max(0, this.#tokens - 1);
    this.#unpublished++;
    this.#last = this.#last
      .then(async () => {
        if (this.#isOver) return;
        await this.#publish(text);
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
