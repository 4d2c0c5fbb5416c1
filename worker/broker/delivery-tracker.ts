/**
 * Counts the calls that still run although their connection is lost.
 *
 * They count against the prefetch limit of the next connection: a worker whose slots are taken
 * would prefetch calls that other workers can run.
 */
import type { Delivery, UnsettledCalls } from "./broker.ts";

/** For a connection without a former one. */
export const noUnsettledCalls: UnsettledCalls = { permitsOf: (_queue, limit) => limit };

/** Permits of one queue that the connection of the moment does not have. */
interface Withheld {
  readonly limit: number;
  readonly onRelease: () => void;
  count: number;
}

export class DeliveryTracker implements UnsettledCalls {
  readonly #redelivers: boolean;
  #connection = 0;
  /** Of the connection of the moment, by queue. */
  #unsettled = new Map<string, number>();
  /** Of lost connections, by queue. */
  readonly #carried = new Map<string, number>();
  /** From the connection of the moment, by queue. */
  readonly #withheld = new Map<string, Withheld>();

  /** @param redelivers whether the broker redelivers what a lost connection leaves */
  constructor(redelivers: boolean) {
    this.#redelivers = redelivers;
  }

  /** The deliveries of the connection of the moment, tracked. Ends with them. */
  async *follow(deliveries: AsyncIterable<Delivery>): AsyncGenerator<Delivery, void> {
    const connection = this.#connection;
    for await (const delivery of deliveries) {
      const isCurrent = connection === this.#connection;
      add(isCurrent ? this.#unsettled : this.#carried, delivery.queue ?? "", 1);
      yield this.#tracked(delivery, connection);
    }
  }

  /** Carries what is unsettled. It withholds no permit before the next `permitsOf`. */
  connectionLost(): void {
    this.#connection++;
    for (const [queue, count] of this.#unsettled) add(this.#carried, queue, count);
    this.#unsettled = new Map();
    this.#withheld.clear();
  }

  permitsOf(queue: string, limit: number, onRelease: () => void): number {
    const count = this.#toWithhold(queue, limit);
    this.#withheld.set(queue, { limit, onRelease, count });
    return limit - count;
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
        if (!isSettled) this.#settled(delivery.queue ?? "", connection);
        isSettled = true;
        await delivery.settle(outcome);
      },
    };
  }

  #settled(queue: string, connection: number): void {
    if (connection === this.#connection) return add(this.#unsettled, queue, -1);
    add(this.#carried, queue, -1);
    const withheld = this.#withheld.get(queue);
    if (withheld === undefined || withheld.count <= this.#toWithhold(queue, withheld.limit)) return;
    withheld.count--;
    withheld.onRelease();
  }

  /** One permit stays: only the redelivery of a carried call shows that it runs here. */
  #toWithhold(queue: string, limit: number): number {
    return Math.max(0, Math.min(this.#carried.get(queue) ?? 0, limit) - 1);
  }
}

function add(counts: Map<string, number>, queue: string, change: number): void {
  counts.set(queue, (counts.get(queue) ?? 0) + change);
}
