/**
 * Keeps the session's subscriptions equal to the tools that the manifest wants served.
 */
import type { BrokerSession } from "../broker/broker.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Milliseconds until tools that could not be served or left are tried again. */
export const subscriptionRetryMs = 5_000;

/**
 * Follows the desired set, not single changes: whatever was missed or failed before is made up for. Its owner disposes it;
 * that ends the retries.
 */
export class Subscriptions implements Disposable {
  readonly #session: Pick<BrokerSession, "serve" | "leave">;
  readonly #log: Logger;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #served: Set<string>;
  /** Aborts when another set is desired, or none any more. */
  #superseded = new AbortController();
  /** The retries for the desired set; never rejects. */
  #retrying: Promise<void> = Promise.resolve();

  /** @param served what the session serves already */
  constructor(
    session: Pick<BrokerSession, "serve" | "leave">,
    served: Iterable<string>,
    log: Logger,
    clock: Pick<Clock, "sleep"> = systemClock,
  ) {
    this.#session = session;
    this.#served = new Set(served);
    this.#log = log;
    this.#clock = clock;
  }

  /** Tools that are served now. */
  get served(): ReadonlySet<string> {
    return this.#served;
  }

  /**
   * Makes the served set `desired`. A tool that fails is logged, and tried again every `subscriptionRetryMs` after this
   * has returned, until it succeeds, another set is to be followed, or the signal aborts. One call at a time; rejects with
   * the signal's reason.
   */
  async follow(desired: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    this.#superseded.abort();
    // Only the waiting ends: of an attempt that is called off nobody knows whether it was carried out.
    await this.#retrying;
    this.#superseded = new AbortController();
    if (await this.#approach(desired, signal)) return;
    this.#retrying = this.#retry(desired, signal, this.#superseded.signal);
  }

  /** Ends the retries. An attempt under way ends with the session. */
  [Symbol.dispose](): void {
    this.#superseded.abort();
  }

  async #retry(
    desired: ReadonlySet<string>,
    signal: AbortSignal,
    superseded: AbortSignal,
  ): Promise<void> {
    const over = AbortSignal.any([signal, superseded]);
    try {
      do await this.#clock.sleep(subscriptionRetryMs, over);
      while (!(await this.#approach(desired, signal)));
    } catch (error) {
      if (!over.aborted) throw error;
    }
  }

  /** Tries once what is missing for the desired set. Whether nothing is missing now. */
  async #approach(desired: ReadonlySet<string>, signal: AbortSignal): Promise<boolean> {
    const leaving = this.#served.difference(desired);
    const joining = desired.difference(this.#served);
    // Together: a broker may make each change wait for the end of a long poll.
    const changes = await Promise.all([
      ...Array.from(leaving, (tool) => this.#attempt(tool, "leave", signal)),
      ...Array.from(joining, (tool) => this.#attempt(tool, "serve", signal)),
    ]);
    return changes.every((isMade) => isMade);
  }

  async #attempt(tool: string, action: "serve" | "leave", signal: AbortSignal): Promise<boolean> {
    try {
      await this.#session[action](tool, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#log.warn({ err: error, tool, action }, "subscription could not be changed");
      return false;
    }
    if (action === "serve") this.#served.add(tool);
    else this.#served.delete(tool);
    return true;
  }
}
