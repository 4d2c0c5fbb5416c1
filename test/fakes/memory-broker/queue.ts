/**
 * The queue of the in-process broker: what waits for a session, how often it was handed out, and
 * what was put aside.
 */
import { BrokerError } from "../../../worker/broker/broker.ts";
import type { MemoryMessage } from "./subscription.ts";

/** Messages that may wait in the queue. */
const maxWaitingMessages = 10_000;

/** Messages that are kept of those that were put aside; of more, the oldest go. */
const maxDeadLetters = 1_000;

/** A message of the queue. */
export interface Queued {
  readonly message: MemoryMessage;
  /** How often it was handed out. */
  deliveryCount: number;
}

/** The queue of a group, in order of arrival. */
export class Queue {
  readonly #maxDeliveries: number;
  readonly #topics = new Set<string>();
  readonly #waiting: Queued[] = [];
  readonly #deadLetters: MemoryMessage[] = [];

  constructor(maxDeliveries: number) {
    this.#maxDeliveries = maxDeliveries;
  }

  /** What nobody could handle, in the order in which it was given up. */
  get deadLetters(): readonly MemoryMessage[] {
    return this.#deadLetters;
  }

  /** Routes a topic into the queue, for good. Idempotent. */
  route(topic: string): void {
    this.#topics.add(topic);
  }

  /**
   * Takes a message of a topic that is routed; whether it is. Throws BrokerError when too much
   * waits.
   */
  offer(message: MemoryMessage): boolean {
    if (!this.#topics.has(message.topic)) return false;
    if (this.#waiting.length >= maxWaitingMessages) {
      throw new BrokerError(`${maxWaitingMessages} messages wait already`, { transient: true });
    }
    this.#waiting.push({ message, deliveryCount: 0 });
    return true;
  }

  /** Hands out the first message. */
  take(): Queued | undefined {
    const queued = this.#waiting.shift();
    if (queued) queued.deliveryCount++;
    return queued;
  }

  /** Puts messages back to the head, and aside when they were handed out often enough. */
  giveBack(returned: readonly Queued[]): void {
    const isSpent = ({ deliveryCount }: Queued): boolean => deliveryCount >= this.#maxDeliveries;
    for (const queued of returned.filter(isSpent)) this.putAside(queued);
    this.#waiting.unshift(...returned.filter((queued) => !isSpent(queued)));
  }

  /** Puts a message where no session sees it. */
  putAside({ message }: Queued): void {
    if (this.#deadLetters.length >= maxDeadLetters) this.#deadLetters.shift();
    this.#deadLetters.push(message);
  }
}
