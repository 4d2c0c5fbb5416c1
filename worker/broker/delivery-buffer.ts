/**
 * Deliveries that a session has received and its consumer has not pulled.
 */
import { Condition } from "../support/condition.ts";
import type { Delivery } from "./broker.ts";

/** In order of arrival, for a single consumer. The prefetch limits of the queues bound it. */
export class DeliveryBuffer implements AsyncIterable<Delivery> {
  readonly #connectionEnded: AbortSignal;
  #waiting: Delivery[] = [];
  #isComplete = false;
  readonly #condition = new Condition();

  /** The broker redelivers what waits when `connectionEnded` aborts. */
  constructor(connectionEnded: AbortSignal) {
    this.#connectionEnded = connectionEnded;
    connectionEnded.addEventListener("abort", () => this.#condition.notify(), { once: true });
  }

  add(delivery: Delivery): void {
    this.#waiting.push(delivery);
    this.#condition.notify();
  }

  /** Ends the iteration after what has arrived. */
  complete(): void {
    this.#isComplete = true;
    this.#condition.notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Delivery, void> {
    while (!this.#connectionEnded.aborted) {
      const next = this.#waiting.shift();
      // The broker redelivers what it took back; settling releases its permit.
      if (next?.isLost === true) await next.settle("failed");
      else if (next !== undefined) yield next;
      else if (this.#isComplete) return;
      else await this.#condition.changed;
    }
    this.#waiting = [];
  }
}
