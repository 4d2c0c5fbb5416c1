/**
 * Messages that a subscription has received and its consumer has not pulled, bounded.
 */
import { Condition } from "../support/condition.ts";
import type { BrokerSubscription, OutboundMessage } from "./broker.ts";

/** Of more messages or bytes the oldest messages go, but the last one stays. */
export const maxWaitingMessages = 10_000;
const maxWaitingBytes = 64 * 1024 * 1024;

export type Weighed = Pick<OutboundMessage, "topic" | "payload" | "properties">;

export interface SubscriptionBufferOptions {
  /** Aborts when no more messages come; those that wait can still be pulled. */
  readonly ended?: AbortSignal;
  /** Called once, at the first disposal. Never rejects. */
  readonly release?: () => Promise<void>;
}

/** A subscription without its broker: an adapter offers it messages. Single consumer. */
export class SubscriptionBuffer<Message extends Weighed>
  implements AsyncIterable<Message>, Pick<BrokerSubscription, "dropped">, AsyncDisposable
{
  readonly #options: SubscriptionBufferOptions;
  readonly #waiting: Message[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #isEnded = false;
  #isDisposed = false;
  readonly #condition = new Condition();

  constructor(options: SubscriptionBufferOptions = {}) {
    this.#options = options;
    options.ended?.addEventListener("abort", this.end, { once: true });
  }

  get dropped(): number {
    return this.#dropped;
  }

  get isDisposed(): boolean {
    return this.#isDisposed;
  }

  /** Takes a message; the oldest ones make room for it. */
  offer(message: Message): void {
    if (this.#isEnded) return;
    this.#waiting.push(message);
    this.#waitingBytes += bytesOf(message);
    while (this.#isTooFull()) {
      this.#take();
      this.#dropped++;
    }
    this.#condition.notify();
  }

  /** Takes no more; what waits can still be pulled. */
  readonly end = (): void => {
    this.#isEnded = true;
    this.#condition.notify();
  };

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void> {
    for (;;) {
      const message = this.#take();
      if (message !== undefined) yield message;
      else if (this.#isEnded) return;
      else await this.#condition.changed;
    }
  }

  /** Takes no more, and forgets what waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#waiting.length = 0;
    this.end();
    this.#options.ended?.removeEventListener("abort", this.end);
    await this.#options.release?.();
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
}

/** The bytes of the payload and the characters of everything else: near enough for a bound. */
function bytesOf({ topic, payload, properties }: Weighed): number {
  const texts = [topic, ...Object.entries(properties ?? {}).flat()];
  return texts.reduce<number>((sum, text) => sum + String(text).length, payload.byteLength);
}
