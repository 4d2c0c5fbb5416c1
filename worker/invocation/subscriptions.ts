/**
 * Keeps the session's subscriptions equal to the tools that the manifest wants served.
 */
import type { BrokerSession } from "../broker/broker.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Follows the desired set, not single changes: whatever was missed or failed before is made up for. */
export class Subscriptions {
  readonly #session: Pick<BrokerSession, "serve" | "leave">;
  readonly #log: Logger;
  readonly #served: Set<string>;

  /** @param served what the session serves already */
  constructor(
    session: Pick<BrokerSession, "serve" | "leave">,
    served: Iterable<string>,
    log: Logger,
  ) {
    this.#session = session;
    this.#served = new Set(served);
    this.#log = log;
  }

  /** Tools that are served now. */
  get served(): ReadonlySet<string> {
    return this.#served;
  }

  /** Makes the served set `desired`. A tool that fails is logged and made up for at the next change. */
  async follow(desired: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const leaving = this.#served.difference(desired);
    const joining = desired.difference(this.#served);
    // Together: a broker may make each change wait for the end of a long poll.
    await Promise.all([
      ...Array.from(leaving, (tool) => this.#attempt(tool, "leave", signal)),
      ...Array.from(joining, (tool) => this.#attempt(tool, "serve", signal)),
    ]);
  }

  async #attempt(tool: string, action: "serve" | "leave", signal: AbortSignal): Promise<void> {
    try {
      await this.#session[action](tool, signal);
      if (action === "serve") this.#served.add(tool);
      else this.#served.delete(tool);
    } catch (error) {
      signal.throwIfAborted();
      this.#log.warn({ err: error, tool, action }, "subscription could not be changed");
    }
  }
}
