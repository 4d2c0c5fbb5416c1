/**
 * Looks after what a session serves through: an operator may remove the exchange or a binding, of which the broker tells nobody.
 */
import type { Clock } from "../../support/clock.ts";
import { createRepeatFilter } from "../../support/repeat-filter.ts";
import { type BrokerLog, reasonOf } from "../log.ts";

/** Milliseconds between two looks. */
export const bindingCheckMs = 15_000;

/** What is looked after. */
export interface BindingWatchParts {
  /** Rejects when there is no exchange; a look that fails tells nothing. */
  check(signal: AbortSignal): Promise<void>;
  /** Makes exchanges and bindings that are not there, and changes nothing that is. Throws BrokerError. */
  bind(signal: AbortSignal): Promise<void>;
  readonly over: AbortSignal;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

/** The watch of one session. Ends with it. */
export class BindingWatch {
  readonly #parts: BindingWatchParts;
  readonly #isNews: (text: string) => boolean;
  #isMissing = false;

  constructor(parts: BindingWatchParts) {
    this.#parts = parts;
    this.#isNews = createRepeatFilter(parts.clock);
    void this.#run();
  }

  /** Whether calls cannot come because what they come through is gone, and cannot be made again. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock, over } = this.#parts;
    while (!over.aborted) {
      await clock.sleep(bindingCheckMs, over).catch(() => undefined);
      if (!over.aborted) await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { check, bind, over, log } = this.#parts;
    try {
      await check(over);
    } catch (error) {
      if (over.aborted) return;
      this.#isMissing = true;
      const reason = reasonOf(error);
      if (this.#isNews(reason)) log.warn({ reason }, "exchange is missing");
    }
    try {
      await bind(over);
      if (this.#isMissing) log.info({}, "exchange and bindings are there again");
      this.#isMissing = false;
    } catch (error) {
      if (over.aborted) return;
      this.#isMissing = true;
      const reason = reasonOf(error);
      if (this.#isNews(reason)) log.warn({ reason }, "bindings cannot be made");
    }
  }
}
