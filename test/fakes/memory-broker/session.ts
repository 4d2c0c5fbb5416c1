/**
 * One session of the in-process broker.
 */
import {
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type UnsettledCalls,
  type Delivery,
  type HeardMessage,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
  type Settlement,
} from "../../../worker/broker/broker.ts";
import { defaultQueue as queue } from "../../../worker/protocol/queue-names.ts";
import type { Weighed } from "../../../worker/broker/subscription-buffer.ts";
import type { Queued } from "./queue.ts";
import type { MemoryMessage, Subscription } from "./subscription.ts";

/** What a session needs of its broker. */
export interface Exchange {
  /** How often a message is handed out at most; undefined without a limit. */
  readonly maxDeliveries: number | undefined;
  /** Deliveries of one session that are not settled, at most. */
  readonly maxUnsettled: number;
  /** Routes the calls of a tool into the queue, which the session consumes from then on. */
  bind(session: MemorySession, toolName: string): void;
  /** Hands out the first message of the queue. */
  take(): Queued | undefined;
  giveBack(returned: readonly Queued[]): void;
  putAside(rejected: Queued): void;
  send(message: OutboundMessage): PublishOutcome;
  /** Offers the subscription every message until it ends; `onEnd` is told then. */
  listen<Heard extends Weighed>(
    pattern: string,
    read: (message: MemoryMessage) => Heard,
    onEnd?: () => void,
  ): Subscription<Heard>;
  /** Told when the session has ended. */
  forget(session: MemorySession): void;
}

/** A connection that lasts until it is disposed of or dropped. */
export class MemorySession implements BrokerSession {
  readonly redelivers = true;
  readonly closed: Promise<SessionEnd>;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #exchange: Exchange;
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #unsettled = new Set<Queued>();
  /** Those of the unsettled ones that do not count against the permits. */
  readonly #exempt = new Set<Queued>();
  /** Deliveries that may be unsettled. */
  #permits: number;
  readonly #subscriptions = new Set<Subscription<HeardMessage>>();
  #isConsuming = false;
  #isEnded = false;
  #isPaused = false;
  #awake = Promise.withResolvers<void>();

  constructor(exchange: Exchange, carried: UnsettledCalls) {
    this.#exchange = exchange;
    this.#permits = carried.permitsOf(queue, exchange.maxUnsettled, () => {
      this.#permits++;
      this.wake();
    });
    this.closed = this.#end.promise;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
  }

  serve(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#do(signal, () => {
      if (!this.#isPaused) this.#exchange.bind(this, toolName);
    });
  }

  leave(_toolName: string, signal: AbortSignal): Promise<void> {
    return this.#do(signal, () => undefined);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#do(signal, () => this.#exchange.send(message));
  }

  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    return this.#do(signal, () => {
      const forget = (): void => void this.#subscriptions.delete(subscription);
      const subscription = this.#exchange.listen(pattern, toHeard, forget);
      this.#subscriptions.add(subscription);
      return subscription;
    });
  }

  pause(): Promise<void> {
    this.#isPaused = true;
    this.wake();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.end({ reason: "asked" });
    return Promise.resolve();
  }

  /** Takes from the queue from now on. */
  consume(): void {
    this.#isConsuming = true;
    this.wake();
  }

  /** Looks again whether there is something to deliver. */
  wake(): void {
    this.#awake.resolve();
    this.#awake = Promise.withResolvers();
  }

  end(end: SessionEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#exchange.forget(this);
    this.#end.resolve(end);
    this.wake();
    for (const subscription of this.#subscriptions) subscription.end();
    this.#exchange.giveBack([...this.#unsettled]);
    this.#unsettled.clear();
  }

  /** Acts at once and tells of it like a broker that is far away. */
  #do<T>(signal: AbortSignal, act: () => T): Promise<T> {
    return new Promise((resolve) => {
      signal.throwIfAborted();
      if (this.#isEnded) throw new BrokerError("The broker session has ended", { transient: true });
      resolve(act());
    });
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What waits in the queues was not received yet: a paused session leaves it to others.
    while (!this.#isEnded && !this.#isPaused) {
      const queued = this.#take();
      if (queued === undefined) await this.#awake.promise;
      else yield this.#toDelivery(queued);
    }
  }

  get #counted(): number {
    return this.#unsettled.size - this.#exempt.size;
  }

  #take(): Queued | undefined {
    if (!this.#isConsuming || this.#counted >= this.#permits) return undefined;
    const queued = this.#exchange.take();
    if (queued) this.#unsettled.add(queued);
    return queued;
  }

  #toDelivery(queued: Queued): Delivery {
    return {
      ...toHeard(queued.message),
      queue,
      redelivered: queued.deliveryCount > 1,
      deliveryCount: queued.deliveryCount,
      maxDeliveries: this.#exchange.maxDeliveries,
      exempt: () => {
        if (this.#unsettled.has(queued)) this.#exempt.add(queued);
        this.wake();
      },
      settle: (outcome) => this.#settle(queued, outcome),
    };
  }

  #settle(queued: Queued, outcome: Settlement): Promise<void> {
    this.#exempt.delete(queued);
    if (this.#unsettled.delete(queued)) {
      if (outcome === "failed") this.#exchange.giveBack([queued]);
      if (outcome === "rejected") this.#exchange.putAside(queued);
      this.wake();
    }
    return Promise.resolve();
  }
}

function toHeard({ topic, payload, properties }: MemoryMessage): HeardMessage {
  const texts = Object.entries(properties).map(([name, value]) => [name, String(value)] as const);
  return { topic, payload, properties: Object.fromEntries(texts) };
}
