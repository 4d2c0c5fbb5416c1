/**
 * Keeps the session's subscriptions equal to the tools that the manifest wants served.
 */
import type { BrokerSession } from "../broker/broker.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Milliseconds until tools that could not be served or left are tried again. */
export const subscriptionRetryMs = 5_000;

/**
 * Follows the desired set, not single changes: whatever was missed or failed before is made up for.
 * Its owner disposes it; that ends the retries.
 */
export class Subscriptions implements Disposable {
  readonly #session: Pick<BrokerSession, "serve" | "leave">;
  readonly #log: Logger;
  readonly #clock: Pick<Clock, "sleep">;
  /** With the queue of each. */
  readonly #served: Map<string, string>;
  /** Aborts when another set is desired, or none any more. */
  #superseded = new AbortController();
  /** The retries for the desired set; never rejects. */
  #retrying: Promise<void> = Promise.resolve();

  /** @param served what the session serves already, with the queue of each tool */
  constructor(
    session: Pick<BrokerSession, "serve" | "leave">,
    served: ReadonlyMap<string, string>,
    log: Logger,
    clock: Pick<Clock, "sleep"> = systemClock,
  ) {
    this.#session = session;
    this.#served = new Map(served);
    this.#log = log;
    this.#clock = clock;
  }

  /** Tools that are served now, with the queue of each. */
  get served(): ReadonlyMap<string, string> {
    return this.#served;
  }

  /**
   * Makes the served set `desired`. A tool that fails is logged, and tried again every
   * `subscriptionRetryMs` after this has returned, until it succeeds, another set is to be
   * followed, or the signal aborts. One call at a time; rejects with the signal's reason.
   */
  async follow(desired: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    this.#superseded.abort();
    // Only the waiting ends: of an attempt that is called off nobody knows whether it was carried
    // out.
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
    desired: ReadonlyMap<string, string>,
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
  async #approach(desired: ReadonlyMap<string, string>, signal: AbortSignal): Promise<boolean> {
    const leaving = [...this.#served.keys()].filter((tool) => !desired.has(tool));
    const joining = [...desired].filter(([tool, queue]) => this.#served.get(tool) !== queue);
    // Together: a broker may make each change wait for the end of a long poll.
    const changes = await Promise.all([
      ...leaving.map((tool) => this.#attempt(tool, undefined, signal)),
      ...joining.map(([tool, queue]) => this.#attempt(tool, queue, signal)),
    ]);
    return changes.every((isMade) => isMade);
  }

  /** @param queue that of a tool to serve; undefined for one to leave */
  async #attempt(tool: string, queue: string | undefined, signal: AbortSignal): Promise<boolean> {
    const action = queue === undefined ? "leave" : "serve";
    try {
      await this.#session[action](tool, signal);
    } catch (error) {
      signal.throwIfAborted();
      logEvent(this.#log, "subscription.change_failed", { err: error, tool, action });
      return false;
    }
    if (queue === undefined) this.#served.delete(tool);
    else this.#served.set(tool, queue);
    return true;
  }
}
