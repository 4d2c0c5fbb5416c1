/**
 * Keeps the session's subscriptions equal to the tools that the manifest wants served.
 */
import type { BrokerSession } from "../../broker/broker.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Milliseconds between attempts for changes that failed. */
export const subscriptionRetryMs = 5_000;

/**
 * Reconciles with the desired set, so that missed and failed changes are repaired. The owner
 * disposes it, which ends the retries.
 */
export class Subscriptions implements Disposable {
  readonly #session: Pick<BrokerSession, "serve" | "leave">;
  readonly #log: Logger;
  readonly #clock: Pick<Clock, "sleep">;
  /** Queue by tool. */
  readonly #served: Map<string, string>;
  /** Aborts when another set replaces the desired one, or none is desired. */
  #superseded = new AbortController();
  /** The retries for the desired set; never rejects. */
  #retrying: Promise<void> = Promise.resolve();

  /** @param served queue by tool that the session serves already */
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

  /** Queue by tool. */
  get served(): ReadonlyMap<string, string> {
    return this.#served;
  }

  /**
   * Makes the served set `desired`. Retries failed tools in the background until they succeed, the
   * next call, or the abort. One call at a time. Rejects with the signal's reason.
   *
   * @param onRetried called after each of these retries, which may have made some changes
   */
  async follow(
    desired: ReadonlyMap<string, string>,
    signal: AbortSignal,
    onRetried: () => void = () => undefined,
  ): Promise<void> {
    this.#superseded.abort();
    // Only the pause is aborted: an aborted attempt might have succeeded at the broker.
    await this.#retrying;
    this.#superseded = new AbortController();
    if (await this.#approach(desired, signal)) return;
    const approach = async (): Promise<boolean> => {
      const isReached = await this.#approach(desired, signal);
      onRetried();
      return isReached;
    };
    this.#retrying = this.#retry(approach, AbortSignal.any([signal, this.#superseded.signal]));
  }

  /** Ends the retries. A running attempt ends with the session. */
  [Symbol.dispose](): void {
    this.#superseded.abort();
  }

  async #retry(approach: () => Promise<boolean>, over: AbortSignal): Promise<void> {
    try {
      do await this.#clock.sleep(subscriptionRetryMs, over);
      while (!(await approach()));
    } catch (error) {
      if (!over.aborted) throw error;
    }
  }

  /** One attempt per missing change. Resolves to whether the sets are equal now. */
  async #approach(desired: ReadonlyMap<string, string>, signal: AbortSignal): Promise<boolean> {
    const leaving = [...this.#served.keys()].filter((tool) => !desired.has(tool));
    const joining = [...desired].filter(([tool, queue]) => this.#served.get(tool) !== queue);
    // Concurrently: a broker may delay each change until the end of a long poll.
    const changes = await Promise.all([
      ...leaving.map((tool) => this.#attempt(tool, undefined, signal)),
      ...joining.map(([tool, queue]) => this.#attempt(tool, queue, signal)),
    ]);
    return changes.every((isMade) => isMade);
  }

  /** @param queue undefined for a tool to leave */
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
