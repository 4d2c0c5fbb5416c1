/**
 * Gives things back in the background, and lets their owner wait for it.
 */
import { type EventLog, logEvent } from "../telemetry/log-event.ts";

/** Everything that is being given back. */
export class Disposal {
  readonly #log: EventLog<"warn">;
  readonly #pending = new Set<Promise<void>>();

  constructor(log: EventLog<"warn">) {
    this.#log = log;
  }

  /** Disposes it without anybody waiting; what goes wrong is logged. */
  end(resource: AsyncDisposable): void {
    const ending = this.#end(resource);
    this.#pending.add(ending);
    void ending.then(() => this.#pending.delete(ending));
  }

  /** Fulfils when everything is given back. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #end(resource: AsyncDisposable): Promise<void> {
    try {
      await resource[Symbol.asyncDispose]();
    } catch (error) {
      logEvent(this.#log, "sandbox.dispose_failed", { err: error });
    }
  }
}
