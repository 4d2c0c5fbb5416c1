/**
 * Disposes resources in the background.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";

/** The disposals under way. */
export class Disposal {
  readonly #log: EventLog<"warn">;
  readonly #pending = new Set<Promise<void>>();

  constructor(log: EventLog<"warn">) {
    this.#log = log;
  }

  /** Disposes the resource from the next turn on: answers go first. Logs an error. */
  begin(resource: AsyncDisposable): void {
    const disposing = this.#dispose(resource);
    this.#pending.add(disposing);
    void disposing.then(() => this.#pending.delete(disposing));
  }

  /** Fulfils when no disposal is under way. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #dispose(resource: AsyncDisposable): Promise<void> {
    await nextTurn();
    try {
      await resource[Symbol.asyncDispose]();
    } catch (error) {
      logEvent(this.#log, "sandbox.dispose_failed", { err: error });
    }
  }
}
