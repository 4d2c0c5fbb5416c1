/**
 * Deliveries that a session has received and its consumer has not pulled.
 */
import type { Delivery } from "./broker.ts";

/** In order of arrival, for a single consumer. The prefetch limits of the queues bound it. */
export class DeliveryBuffer implements AsyncIterable<Delivery> {
  readonly #connectionEnded: AbortSignal;
  #waiting: Delivery[] = [];
  #isComplete = false;
  #changed = Promise.withResolvers<void>();

  /** The broker redelivers what waits when `connectionEnded` aborts. */
  constructor(connectionEnded: AbortSignal) {
    this.#connectionEnded = connectionEnded;
    connectionEnded.addEventListener("abort", () => this.#notify(), { once: true });
  }

  add(delivery: Delivery): void {
    this.#waiting.push(delivery);
    this.#notify();
  }

  /** Ends the iteration after what has arrived. */
  complete(): void {
    this.#isComplete = true;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Delivery, void> {
    while (!this.#connectionEnded.aborted) {
      const next = this.#waiting.shift();
      // The broker redelivers what it took back; settling releases its permit.
      if (next?.isLost === true) await next.settle("failed");
      else if (next !== undefined) yield next;
      else if (this.#isComplete) return;
      else await this.#changed.promise;
    }
    this.#waiting = [];
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
