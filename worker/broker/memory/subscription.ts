/**
 * One listener of the in-process broker.
 */
import { topicMatches } from "../../protocol/topics.ts";
import type { OutboundMessage } from "../broker.ts";

/** Messages that may wait for a listener; of more, the oldest go. */
const maxWaitingMessages = 10_000;

/** A message as the other side of the broker sees it. */
export type MemoryMessage = Required<OutboundMessage>;

/** What a listener hears, in order, until it is disposed of. Single consumer. */
export interface MemorySubscription extends AsyncIterable<MemoryMessage>, Disposable {}

/** Keeps what was heard until it is pulled. */
export class Subscription implements MemorySubscription {
  readonly #pattern: string;
  readonly #onDispose: () => void;
  readonly #messages: MemoryMessage[] = [];
  #isDisposed = false;
  #awake = Promise.withResolvers<void>();

  constructor(pattern: string, onDispose: () => void) {
    this.#pattern = pattern;
    this.#onDispose = onDispose;
  }

  offer(message: MemoryMessage): void {
    if (!topicMatches(this.#pattern, message.topic)) return;
    if (this.#messages.length >= maxWaitingMessages) this.#messages.shift();
    this.#messages.push(message);
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<MemoryMessage, void> {
    while (!this.#isDisposed) {
      const message = this.#messages.shift();
      if (message === undefined) await this.#awake.promise;
      else yield message;
    }
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#onDispose();
    this.#wake();
  }

  #wake(): void {
    this.#awake.resolve();
    this.#awake = Promise.withResolvers();
  }
}
