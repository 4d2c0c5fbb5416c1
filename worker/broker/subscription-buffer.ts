/**
 * What a listener has heard and nobody has pulled yet: bounded, whoever publishes and however
 * slowly it is pulled.
 */
import type { BrokerSubscription, OutboundMessage } from "./broker.ts";

/** Messages that may wait for a listener; of more, the oldest go. */
const maxWaitingMessages = 10_000;

/**
 * Bytes of messages that may wait for a listener; of more, the oldest go. The last one stays,
 * however large it is.
 */
const maxWaitingBytes = 64 * 1024 * 1024;

/** What of a message takes room. */
export type Weighed = Pick<OutboundMessage, "topic" | "payload" | "properties">;

/** Messages in order, for a single consumer. Its owner tells it when no more are to come. */
export class SubscriptionBuffer<Message extends Weighed>
  implements AsyncIterable<Message>, Pick<BrokerSubscription, "dropped">, Disposable
{
  readonly #waiting: Message[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a message, in the place of the oldest ones where there is no room for it. */
  offer(message: Message): void {
    if (this.#isEnded) return;
    this.#waiting.push(message);
    this.#waitingBytes += bytesOf(message);
    while (this.#isTooFull()) {
      this.#take();
      this.#dropped++;
    }
    this.#notify();
  }

  /** Takes no more; what waits can still be pulled. */
  end(): void {
    this.#isEnded = true;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void> {
    for (;;) {
      const message = this.#take();
      if (message !== undefined) yield message;
      else if (this.#isEnded) return;
      else await this.#changed.promise;
    }
  }

  /** Takes no more, and forgets what waits. */
  [Symbol.dispose](): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.end();
  }

  #isTooFull(): boolean {
    const { length } = this.#waiting;
    return length > maxWaitingMessages || (length > 1 && this.#waitingBytes > maxWaitingBytes);
  }

  #take(): Message | undefined {
    const message = this.#waiting.shift();
    if (message !== undefined) this.#waitingBytes -= bytesOf(message);
    return message;
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** The bytes of the payload and the characters of everything else: near enough for a bound. */
function bytesOf({ topic, payload, properties }: Weighed): number {
  const texts = [topic, ...Object.entries(properties ?? {}).flat()];
  return texts.reduce<number>((sum, text) => sum + String(text).length, payload.byteLength);
}
