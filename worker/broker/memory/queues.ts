/**
 * The queues of the in-process broker: what waits for a session, how often it was handed out, and what was put aside.
 */
import { BrokerError } from "../broker.ts";
import type { MemoryMessage } from "./subscription.ts";

/** Messages that may wait in the queues. */
const maxWaitingMessages = 10_000;

/** Messages that are kept of those that were put aside; of more, the oldest go. */
const maxDeadLetters = 1_000;

/** A message of a queue; `message.topic` is its queue. */
export interface Queued {
  readonly message: MemoryMessage;
  /** How often it was handed out. */
  deliveryCount: number;
}

/** One queue per topic that was opened, all in one line of arrival. */
export class Queues {
  readonly #maxDeliveries: number;
  readonly #topics = new Set<string>();
  #waiting: Queued[] = [];
  readonly #deadLetters: MemoryMessage[] = [];

  constructor(maxDeliveries: number) {
    this.#maxDeliveries = maxDeliveries;
  }

  /** What nobody could handle, in the order in which it was given up. */
  get deadLetters(): readonly MemoryMessage[] {
    return this.#deadLetters;
  }

  /** Makes the queue of a topic. Idempotent. */
  open(topic: string): void {
    this.#topics.add(topic);
  }

  /** Removes the queue of a topic with what waits in it. Idempotent. */
  close(topic: string): void {
    this.#topics.delete(topic);
    this.#waiting = this.#waiting.filter(({ message }) => message.topic !== topic);
  }

  /** Puts a message into the queue of its topic; whether there is one. Throws BrokerError when too much waits. */
  offer(message: MemoryMessage): boolean {
    if (!this.#topics.has(message.topic)) return false;
    if (this.#waiting.length >= maxWaitingMessages) {
      throw new BrokerError(`${maxWaitingMessages} messages wait already`, { transient: true });
    }
    this.#waiting.push({ message, deliveryCount: 0 });
    return true;
  }

  /** Hands out the first message of these topics. */
  take(topics: ReadonlySet<string>): Queued | undefined {
    const index = this.#waiting.findIndex(({ message }) => topics.has(message.topic));
    const queued = index === -1 ? undefined : this.#waiting.splice(index, 1)[0];
    if (queued) queued.deliveryCount++;
    return queued;
  }

  /** Puts messages back to the heads of their queues, and aside when they were handed out often enough. */
  giveBack(returned: readonly Queued[]): void {
    const spent = returned.filter(({ deliveryCount }) => deliveryCount >= this.#maxDeliveries);
    for (const queued of spent) this.putAside(queued);
    const again = returned.filter(
      (queued) => this.#topics.has(queued.message.topic) && !spent.includes(queued),
    );
    this.#waiting.unshift(...again);
  }

  /** Puts a message where no session sees it. */
  putAside({ message }: Queued): void {
    if (this.#deadLetters.length >= maxDeadLetters) this.#deadLetters.shift();
    this.#deadLetters.push(message);
  }
}
