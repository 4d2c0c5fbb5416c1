/**
 * Checks the store again and again, so that an operator sees it go away and come back. Calls do not
 * wait for it: only those that need the store fail while it is away.
 */
import type { Clock } from "../support/clock.ts";
import { abortable } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type ArtifactStore, StoreError } from "./store.ts";

/** Milliseconds between two checks, and for the answer of one. */
const [betweenMs, timeoutMs] = [30_000, 10_000];

/** Dependencies of a watch. */
export interface StoreWatchParts {
  readonly store: Pick<ArtifactStore, "check">;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Logger;
}

/** Checks until its disposal. */
export class StoreWatch implements AsyncDisposable {
  readonly #parts: StoreWatchParts;
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;
  #problem: string | undefined;

  /** Starts watching a store that was checked. */
  constructor(parts: StoreWatchParts) {
    this.#parts = parts;
    this.#ended = this.#run(this.#stopped.signal);
  }

  /** Why the store cannot be used at present, for the operator. */
  get problems(): readonly string[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  async #run(stopped: AbortSignal): Promise<void> {
    try {
      for (;;) {
        await this.#parts.clock.sleep(betweenMs, stopped);
        await this.#check(stopped);
      }
    } catch {
      // It was stopped.
    }
  }

  async #check(stopped: AbortSignal): Promise<void> {
    const { store, log } = this.#parts;
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(timeoutMs)]);
    try {
      // A stalled file system does not look at the signal.
      await abortable(store.check(signal), signal);
      if (this.#problem !== undefined) logEvent(log, "artifacts.back");
      this.#problem = undefined;
    } catch (error) {
      stopped.throwIfAborted();
      if (this.#problem === undefined) logEvent(log, "artifacts.away", { err: error });
      this.#problem =
        error instanceof StoreError
          ? error.message
          : `The artifact store did not answer in ${timeoutMs / 1000} s.`;
    }
  }
}
