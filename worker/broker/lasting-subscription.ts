/**
 * A subscription that outlives the sessions which it is made on, one after the other.
 */
import type { BrokerSession, BrokerSubscription, HeardMessage } from "./broker.ts";

/** What of a session matters here. */
type Source = Pick<BrokerSession, "subscribe">;

/**
 * Hears what the subscription of the moment hears, and waits while there is none. What a former one
 * has heard and nobody has pulled is lost when the next one takes its place. Owns the subscriptions
 * beneath it.
 */
export class LastingSubscription implements BrokerSubscription {
  readonly #pattern: string;
  readonly #onDispose: () => void;
  /** Where it is going, or is. */
  #target: Source | undefined;
  #current: { readonly source: Source; readonly heard: BrokerSubscription } | undefined;
  /** What former subscriptions had dropped. */
  #droppedBefore = 0;
  #isEnded = false;
  /** Resolves when `#current` or `#isEnded` changes. */
  #changed = Promise.withResolvers<void>();

  /**
   * Hears nothing before it has moved to a session. `onDispose` is told when it will hear nothing
   * more.
   */
  constructor(pattern: string, onDispose: () => void) {
    this.#pattern = pattern;
    this.#onDispose = onDispose;
  }

  get dropped(): number {
    return this.#droppedBefore + (this.#current?.heard.dropped ?? 0);
  }

  /** Whether it hears what `session` does. */
  isOn(session: Source): boolean {
    return this.#current?.source === session;
  }

  /**
   * Subscribes on `session` and leaves the one before; the last call wins. Does nothing once the
   * subscription has ended. Throws BrokerError, or the signal's reason.
   */
  async moveTo(session: Source, signal: AbortSignal): Promise<void> {
    if (this.#isEnded) return;
    this.#target = session;
    const heard = await session.subscribe(this.#pattern, signal);
    if (this.#isEnded || this.#target !== session) {
      await heard[Symbol.asyncDispose]();
      return;
    }
    const former = this.#current?.heard;
    this.#droppedBefore += former?.dropped ?? 0;
    this.#current = { source: session, heard };
    this.#notify();
    await former?.[Symbol.asyncDispose]();
  }

  /** Moves no more: ends with the session of the moment. */
  end(): void {
    this.#isEnded = true;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HeardMessage, void> {
    let last: BrokerSubscription | undefined;
    for (;;) {
      const heard = this.#current?.heard;
      if (heard !== undefined && heard !== last) {
        last = heard;
        yield* heard;
      } else if (this.#isEnded) {
        return;
      } else {
        await this.#changed.promise;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
    this.#onDispose();
    await this.#current?.heard[Symbol.asyncDispose]();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
