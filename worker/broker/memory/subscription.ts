/**
 * One listener of the in-process broker.
 */
import { topicMatches } from "../../protocol/topics.ts";
import type { BrokerSubscription, OutboundMessage } from "../broker.ts";

/** Messages that may wait for a listener; of more, the oldest go. */
const maxWaitingMessages = 10_000;

/** A message as the other side of the broker sees it. */
export type MemoryMessage = Required<Omit<OutboundMessage, "isStatus">>;

/** What an agent hears, in order, until it is disposed of. Single consumer. */
export interface MemorySubscription
  extends AsyncIterable<MemoryMessage>, Pick<BrokerSubscription, "dropped">, Disposable {}

/** Keeps what was heard until it is pulled: for an agent as it was published, for a session as sessions see it. */
export class Subscription<Heard> implements AsyncIterable<Heard>, AsyncDisposable, Disposable {
  readonly #pattern: string;
  readonly #read: (message: MemoryMessage) => Heard;
  readonly #onEnd: () => void;
  readonly #waiting: Heard[] = [];
  #dropped = 0;
  #isEnded = false;
  #awake = Promise.withResolvers<void>();

  /** `onEnd` is told when the subscription hears no more. */
  constructor(pattern: string, read: (message: MemoryMessage) => Heard, onEnd: () => void) {
    this.#pattern = pattern;
    this.#read = read;
    this.#onEnd = onEnd;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a message that is for it; whether it is. */
  offer(message: MemoryMessage): boolean {
    if (!topicMatches(this.#pattern, message.topic)) return false;
    if (this.#waiting.length >= maxWaitingMessages) {
      this.#waiting.shift();
      this.#dropped++;
    }
    this.#waiting.push(this.#read(message));
    this.#wake();
    return true;
  }

  /** Hears no more; what it has heard can still be pulled. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd();
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Heard, void> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) yield message;
      else if (this.#isEnded) return;
      else await this.#awake.promise;
    }
  }

  [Symbol.dispose](): void {
    this.#waiting.length = 0;
    this.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]();
    return Promise.resolve();
  }

  #wake(): void {
    this.#awake.resolve();
    this.#awake = Promise.withResolvers();
  }
}
