/**
 * Work that several callers wait for, each with its own signal.
 */
import { abortable } from "../../support/timeout.ts";

interface Running {
  readonly result: Promise<void>;
  readonly over: AbortController;
  waiting: number;
}

/** One piece of work per key at a time. */
export class SharedWork {
  readonly #running = new Map<string, Running>();

  /**
   * Joins the running work, or starts it. Rejects as the work does, or with the signal's reason.
   * The work is aborted when its last caller has given up.
   */
  async join(
    key: string,
    start: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const running = this.#running.get(key) ?? this.#start(key, start);
    running.waiting++;
    try {
      await abortable(running.result, signal);
    } finally {
      if (--running.waiting === 0) this.#end(key, running);
    }
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<void>): Running {
    const over = new AbortController();
    const running = { result: start(over.signal), over, waiting: 0 };
    this.#running.set(key, running);
    return running;
  }

  /** A later caller starts anew. */
  #end(key: string, running: Running): void {
    running.over.abort(new Error("the last caller has given up"));
    if (this.#running.get(key) === running) this.#running.delete(key);
  }
}
