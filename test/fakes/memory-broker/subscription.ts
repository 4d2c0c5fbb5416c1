/**
 * One listener of the in-process broker.
 */
import { topicMatches } from "../../../worker/protocol/topics.ts";
import type { BrokerSubscription } from "../../../worker/broker/broker.ts";
import { SubscriptionBuffer, type Weighed } from "../../../worker/broker/subscription-buffer.ts";

/** A message as the other side of the broker sees it. */
export type MemoryMessage = Required<Weighed>;

/** What an agent hears, in order, until it is disposed of. Single consumer. */
export interface MemorySubscription
  extends AsyncIterable<MemoryMessage>, Pick<BrokerSubscription, "dropped">, Disposable {}

/**
 * Keeps what was heard until it is pulled: for an agent as it was published, for a session as
 * sessions see it.
 */
export class Subscription<Heard extends Weighed>
  implements AsyncIterable<Heard>, AsyncDisposable, Disposable
{
  readonly #pattern: string;
  readonly #read: (message: MemoryMessage) => Heard;
  readonly #onEnd: () => void;
  readonly #heard = new SubscriptionBuffer<Heard>();
  #isEnded = false;

  /** `onEnd` is told when the subscription hears no more. */
  constructor(pattern: string, read: (message: MemoryMessage) => Heard, onEnd: () => void) {
    this.#pattern = pattern;
    this.#read = read;
    this.#onEnd = onEnd;
  }

  get dropped(): number {
    return this.#heard.dropped;
  }

  /** Takes a message that is for it; whether it is. */
  offer(message: MemoryMessage): boolean {
    if (!topicMatches(this.#pattern, message.topic)) return false;
    this.#heard.offer(this.#read(message));
    return true;
  }

  /** Hears no more; what it has heard can still be pulled. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#heard.end();
    this.#onEnd();
  }

  [Symbol.asyncIterator](): AsyncIterator<Heard> {
    return this.#heard[Symbol.asyncIterator]();
  }

  [Symbol.dispose](): void {
    void this.#heard[Symbol.asyncDispose]();
    this.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]();
    return Promise.resolve();
  }
}
