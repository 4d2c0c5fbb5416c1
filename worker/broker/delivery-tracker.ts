/**
 * Counts the calls that still run although their connection is lost.
 *
 * They count against the prefetch limit of the next connection: a worker whose slots are taken
 * would prefetch calls that other workers can run.
 */
import type { Delivery, PrefetchPermits, UnsettledCalls } from "./broker.ts";

/** For a connection without a former one. */
export const noUnsettledCalls: UnsettledCalls = {
  permitsOf: (_queue, limit) => ({ available: limit, onRelease: () => {} }),
};

/** The permits of one queue on the connection of the moment. */
class QueuePermits implements PrefetchPermits {
  readonly available: number;
  readonly #limit: number;
  #withheld: number;
  /** Permits that were released before there was a listener. */
  #pending = 0;
  #listener = (): void => void this.#pending++;

  constructor(limit: number, carried: number) {
    this.#limit = limit;
    this.#withheld = this.#toWithhold(carried);
    this.available = limit - this.#withheld;
  }

  onRelease(listener: () => void): void {
    this.#listener = listener;
    for (; this.#pending > 0; this.#pending--) listener();
  }

  /** Releases a permit when fewer calls are carried than permits are withheld. */
  update(carried: number): void {
    if (this.#withheld <= this.#toWithhold(carried)) return;
    this.#withheld--;
    this.#listener();
  }

  /** One permit stays: only the redelivery of a carried call shows that it runs here. */
  #toWithhold(carried: number): number {
    return Math.max(0, Math.min(carried, this.#limit) - 1);
  }
}

/** Follows deliveries to their settlement, across lost connections. */
export class DeliveryTracker implements UnsettledCalls {
  readonly #redelivers: boolean;
  /** Counts connections. */
  #connection = 0;
  /** Of the connection of the moment, by queue. */
  #unsettled = new Map<string, number>();
  /** Of lost connections, by queue. */
  readonly #carried = new Map<string, number>();
  readonly #permits = new Map<string, QueuePermits>();

  /** @param redelivers whether the broker redelivers what a lost connection leaves */
  constructor(redelivers: boolean) {
    this.#redelivers = redelivers;
  }

  /** The deliveries of the connection of the moment, tracked. Ends with them. */
  async *follow(deliveries: AsyncIterable<Delivery>): AsyncGenerator<Delivery, void> {
    const connection = this.#connection;
    for await (const delivery of deliveries) {
      const isCurrent = connection === this.#connection;
      add(isCurrent ? this.#unsettled : this.#carried, queueOf(delivery), 1);
      yield this.#tracked(delivery, connection);
    }
  }

  /** Carries what is unsettled. It withholds no permit before the next `permitsOf`. */
  connectionLost(): void {
    this.#connection++;
    for (const [queue, count] of this.#unsettled) add(this.#carried, queue, count);
    this.#unsettled = new Map();
    this.#permits.clear();
  }

  permitsOf(queue: string, limit: number): PrefetchPermits {
    const permits = new QueuePermits(limit, this.#carried.get(queue) ?? 0);
    this.#permits.set(queue, permits);
    return permits;
  }

  #tracked(delivery: Delivery, connection: number): Delivery {
    let isSettled = false;
    const isLost = (): boolean =>
      delivery.isLost === true || (this.#redelivers && connection !== this.#connection);
    return {
      ...delivery,
      get isLost() {
        return isLost();
      },
      settle: async (outcome) => {
        if (!isSettled) this.#settled(queueOf(delivery), connection);
        isSettled = true;
        await delivery.settle(outcome);
      },
    };
  }

  #settled(queue: string, connection: number): void {
    if (connection === this.#connection) return add(this.#unsettled, queue, -1);
    add(this.#carried, queue, -1);
    this.#permits.get(queue)?.update(this.#carried.get(queue) ?? 0);
  }
}

function queueOf({ queue = "" }: Delivery): string {
  return queue;
}

function add(counts: Map<string, number>, queue: string, change: number): void {
  counts.set(queue, (counts.get(queue) ?? 0) + change);
}
