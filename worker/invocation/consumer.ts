/**
 * Pulls deliveries, keeps the set of those in flight, and drains it.
 */
import type { BrokerSession, Delivery, Settlement } from "../broker/broker.ts";

/** Deliveries in flight beyond slots and waiting line: those that are just being refused. */
const refusalsInFlight = 16;

/**
 * Bytes of requests in flight from which on no further one is handled; what comes then waits in the
 * broker, but for the next one. One request may go beyond, so that the largest is handled as well.
 */
export const maxRequestBytesInFlight = 64 * 1024 * 1024;

/** How many calls a worker runs at once, and how many may wait for their turn in it. */
export interface CallLimits {
  readonly maxConcurrent: number;
  /** In the lines of all queues. */
  readonly maxQueued: number;
}

/**
 * Deliveries that a worker handles at once. A broker that redelivers bounds them by its prefetch
 * limits. Elsewhere calls wait in the worker, and a few more are pulled to be refused.
 */
export function maxDeliveriesInFlight(limits: CallLimits, redelivers: boolean): number {
  return redelivers ? Infinity : limits.maxConcurrent + limits.maxQueued + refusalsInFlight;
}

/** A delivery whose call is identified. */
export interface ReceivedDelivery {
  /** Whether the call runs in this worker, so that handling needs no capacity. */
  isRunning(): boolean;
  /** Resolves to the settlement; undefined for a delivery left unsettled. Never rejects. */
  handle(): Promise<Settlement | undefined>;
}

/** Result of a drain: counts of deliveries. */
export interface DrainReport {
  /** Answered, or refused. */
  readonly finished: number;
  /** Settled `failed`: another worker takes them, where the broker redelivers. */
  readonly requeued: number;
  /** Still unfinished at the deadline. */
  readonly abandoned: number;
}

/** The loop between a session and the handler. */
export class Consumer {
  readonly #session: Pick<BrokerSession, "deliveries" | "pause">;
  readonly #receive: (delivery: Delivery) => ReceivedDelivery;
  readonly #maxInFlight: number;
  readonly #inFlight = new Set<Promise<void>>();
  #requestBytes = 0;
  #finished = 0;
  #requeued = 0;
  /**
   * Resolves when a delivery is done with. A race of those in flight would leave something behind
   * in the longest of them each time.
   */
  #oneEnded = Promise.withResolvers<void>();
  /** The loop; never rejects. */
  #pulling: Promise<void> = Promise.resolve();
  /** In a drain: until the session has handed out the last delivery. */
  #lastPulled: Promise<unknown> = Promise.resolve();

  /** @param maxInFlight see {@link maxDeliveriesInFlight} */
  constructor(
    session: Pick<BrokerSession, "deliveries" | "pause">,
    receive: (delivery: Delivery) => ReceivedDelivery,
    maxInFlight: number,
  ) {
    this.#session = session;
    this.#receive = receive;
    this.#maxInFlight = maxInFlight;
  }

  /** Deliveries that are being handled now. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Pulls until the session's deliveries end: with the session, or in a drain. */
  async run(): Promise<void> {
    const pulling = this.#pull();
    this.#pulling = pulling.catch(() => {});
    await pulling;
  }

  /**
   * Stops intake and waits until everything that the session had received is handled, or the signal
   * aborts. What the session hands out later than that is handled as well; `settled` waits for it.
   */
  async drain(signal: AbortSignal): Promise<DrainReport> {
    // Counted, not subtracted: what the session had received before it was paused is still to come.
    const [finishedBefore, requeuedBefore] = [this.#finished, this.#requeued];
    this.#lastPulled = Promise.all([this.#session.pause(), this.#pulling]);
    await endedOrAborted(this.settled(), signal);
    return {
      finished: this.#finished - finishedBefore,
      requeued: this.#requeued - requeuedBefore,
      abandoned: this.#inFlight.size,
    };
  }

  /**
   * Fulfils when nothing is in flight and, once a drain has started, nothing more is to come. When
   * the signal aborts it waits for nothing more to come.
   */
  async settled(signal?: AbortSignal): Promise<void> {
    await endedOrAborted(this.#lastPulled, signal);
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  async #pull(): Promise<void> {
    for await (const delivery of this.#session.deliveries) {
      const received = this.#receive(delivery);
      // After a lost connection the broker redelivers calls while they still fill the worker.
      const needsCapacity = this.#isFull() && !received.isRunning();
      while (needsCapacity && this.#isFull()) await this.#oneEnded.promise;
      if (needsCapacity && delivery.isLost === true) await delivery.settle("failed");
      else this.#start(received, delivery.payload);
    }
  }

  #start(received: ReceivedDelivery, { byteLength }: Uint8Array): void {
    this.#requestBytes += byteLength;
    const handled = received.handle().then((settlement) => {
      this.#inFlight.delete(handled);
      this.#requestBytes -= byteLength;
      if (settlement === "failed") this.#requeued++;
      else if (settlement !== undefined) this.#finished++;
      this.#oneEnded.resolve();
      this.#oneEnded = Promise.withResolvers();
    });
    this.#inFlight.add(handled);
  }

  #isFull(): boolean {
    return (
      this.#inFlight.size >= this.#maxInFlight || this.#requestBytes >= maxRequestBytesInFlight
    );
  }
}

/**
 * Waits for a promise that never rejects, or until the signal aborts. Leaves no listener behind.
 */
async function endedOrAborted(promise: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  const onAbort = (): void => aborted.resolve();
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
