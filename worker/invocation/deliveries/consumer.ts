/**
 * Pulls deliveries, bounds the number in flight, and drains them.
 */
import type { BrokerSession, Delivery, Settlement } from "../../broker/broker.ts";

/** Deliveries in flight beyond those that run or wait, so that the worker can refuse them. */
const refusalsInFlight = 16;

/**
 * Bytes of requests in flight. At this bound the consumer stops pulling, after one prefetched
 * delivery. One request may exceed the bound, so that the largest is handled, too.
 */
export const maxRequestBytesInFlight = 64 * 1024 * 1024;

/** Bounds of a worker without a prefetching broker. */
export interface CallLimits {
  readonly maxConcurrent: number;
  /** Calls that wait for a slot, over all queues. */
  readonly maxQueued: number;
  /** Calls that wait for calls of their own. */
  readonly maxSuspended: number;
}

/**
 * Bound of the deliveries in flight. A broker that redelivers bounds them by its prefetch limits.
 * Otherwise calls queue in the worker, which pulls a few more to refuse them.
 */
export function maxDeliveriesInFlight(limits: CallLimits, redelivers: boolean): number {
  if (redelivers) return Infinity;
  const { maxConcurrent, maxQueued, maxSuspended } = limits;
  return maxConcurrent + maxQueued + maxSuspended + refusalsInFlight;
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
  /** Answered or refused. */
  readonly finished: number;
  /** Settled `failed`, so that the broker delivers them to another worker. */
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
  /** Resolves at the end of any delivery. A race would add a handler to each, each time. */
  #oneEnded = Promise.withResolvers<void>();
  /** The pull loop; never rejects. */
  #pulling: Promise<void> = Promise.resolve();
  /** During a drain: resolves after the session's last delivery. */
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

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Pulls until the session's deliveries end, with the session or in a drain. */
  async run(): Promise<void> {
    const pulling = this.#pull();
    this.#pulling = pulling.catch(() => {});
    await pulling;
  }

  /**
   * Pauses the session and waits until all received deliveries are handled, or the signal aborts.
   * The consumer handles deliveries after the abort, too; `settled` waits for them.
   */
  async drain(signal: AbortSignal): Promise<DrainReport> {
    // The session still delivers its received messages, so counts at the start would miss them.
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
   * Resolves when no delivery is in flight and, during a drain, none will follow. An aborted signal
   * drops the second condition.
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

/** Waits for a promise that never rejects, or for the abort. Leaves no listener behind. */
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
