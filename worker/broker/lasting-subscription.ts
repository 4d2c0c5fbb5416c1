/**
 * A subscription that outlives its sessions.
 */
import { Condition } from "../support/condition.ts";
import type { BrokerSession, BrokerSubscription, HeardMessage } from "./broker.ts";

type Source = Pick<BrokerSession, "subscribe">;

/**
 * Owns a subscription on the session of the moment, and waits while there is none. A move loses
 * what the former one has received and the consumer has not pulled.
 */
export class LastingSubscription implements BrokerSubscription {
  readonly #pattern: string;
  readonly #onDispose: () => void;
  /** The session of the last move, which may be under way. */
  #target: Source | undefined;
  #current: { readonly source: Source; readonly heard: BrokerSubscription } | undefined;
  #droppedBefore = 0;
  #isEnded = false;
  readonly #condition = new Condition();

  /** Has no session before the first move. */
  constructor(pattern: string, onDispose: () => void) {
    this.#pattern = pattern;
    this.#onDispose = onDispose;
  }

  get dropped(): number {
    return this.#droppedBefore + (this.#current?.heard.dropped ?? 0);
  }

  isOn(session: Source): boolean {
    return this.#current?.source === session;
  }

  /** The last move wins. Does nothing after the end. */
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
    this.#condition.notify();
    await former?.[Symbol.asyncDispose]();
  }

  /** Moves no more: ends with the session of the moment. */
  end(): void {
    this.#isEnded = true;
    this.#condition.notify();
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
        await this.#condition.changed;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
    this.#onDispose();
    await this.#current?.heard[Symbol.asyncDispose]();
  }
}
