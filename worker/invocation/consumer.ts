/**
 * Pulls deliveries, keeps the set of those in flight, and drains it.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";

/** Deliveries in flight beyond slots and waiting line: those that are just being refused. */
const refusalsInFlight = 16;

/** What became of the deliveries in flight when a drain ended. */
export interface DrainReport {
  readonly finished: number;
  /** Still unfinished at the deadline. */
  readonly abandoned: number;
}

/** The loop between a session and the handler. */
export class Consumer {
  readonly #session: Pick<BrokerSession, "deliveries" | "pause">;
  readonly #handle: (delivery: Delivery) => Promise<void>;
  readonly #maxInFlight: number;
  readonly #inFlight = new Set<Promise<void>>();
  #handled = 0;

  /**
   * @param handle never rejects
   * @param maxCalls calls that can run or wait at once; a few more are pulled so that they are refused, not left
   */
  constructor(
    session: Pick<BrokerSession, "deliveries" | "pause">,
    handle: (delivery: Delivery) => Promise<void>,
    maxCalls: number,
  ) {
    this.#session = session;
    this.#handle = handle;
    this.#maxInFlight = maxCalls + refusalsInFlight;
  }

  /** Deliveries that are being handled now. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Pulls until the session's deliveries end. */
  async run(): Promise<void> {
    for await (const delivery of this.#session.deliveries) {
      const handled = this.#handle(delivery).finally(() => {
        this.#inFlight.delete(handled);
        this.#handled++;
      });
      this.#inFlight.add(handled);
      if (this.#inFlight.size >= this.#maxInFlight) await Promise.race(this.#inFlight);
    }
  }

  /** Stops intake and waits until nothing is in flight or the signal aborts. */
  async drain(signal: AbortSignal): Promise<DrainReport> {
    await this.#session.pause();
    // Counted, not subtracted: what the session had pulled before it was paused may still come.
    const handledBefore = this.#handled;
    const aborted = Promise.withResolvers<void>();
    const onAbort = (): void => aborted.resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      await Promise.race([this.settled(), aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    return { finished: this.#handled - handledBefore, abandoned: this.#inFlight.size };
  }

  /** Fulfils when nothing is in flight. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }
}
