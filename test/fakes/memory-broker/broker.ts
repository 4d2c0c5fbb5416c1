/**
 * A broker inside this process, for tests and for those who use the worker as a library.
 *
 * It behaves like a broker with the one durable queue of a worker group. The first `serve` of a
 * tool routes its calls into the queue, for good. A call goes to one session of those that have
 * served a tool, and comes back when the session ends without having settled it. Subscribers get
 * every other message that is published meanwhile.
 */
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import {
  type Broker,
  BrokerError,
  type BrokerSession,
  type UnsettledCalls,
  type OutboundMessage,
  type PublishOutcome,
} from "../../../worker/broker/broker.ts";
import { noUnsettledCalls } from "../../../worker/broker/delivery-tracker.ts";
import type { Weighed } from "../../../worker/broker/subscription-buffer.ts";
import { stamped } from "../../../worker/broker/timestamp.ts";
import { Queue, type Queued } from "./queue.ts";
import { type Exchange, MemorySession } from "./session.ts";
import { type MemoryMessage, type MemorySubscription, Subscription } from "./subscription.ts";

/** The broker with the face that it shows to agents. */
export interface MemoryBroker extends Broker {
  /**
   * What no session gets any more: it was settled `rejected`, or handed out too often. Of many, the
   * last ones.
   */
  readonly deadLetters: readonly MemoryMessage[];
  /** Publishes as an agent does. Throws BrokerError when the queue is full. */
  publish(
    topic: string,
    payload: Uint8Array,
    properties?: MemoryMessage["properties"],
  ): PublishOutcome;
  /** Hears every message whose topic matches, from now on. The caller disposes it. */
  subscribe(pattern: string): MemorySubscription;
  /** Ends every session as if the connection had broken. */
  dropSessions(): void;
}

/** How a broker in this process behaves. */
export interface MemoryBrokerOptions {
  readonly namespace: string;
  readonly clock?: Clock;
  /**
   * How often a message is handed out, at most, before it is a dead letter; without end unless
   * told.
   */
  readonly maxDeliveries?: number | undefined;
  /** Deliveries of one session that are not settled, at most; no limit unless told. */
  readonly maxUnsettled?: number | undefined;
}

/** Makes a broker of its own. */
export function createMemoryBroker(options: MemoryBrokerOptions): MemoryBroker {
  return new InProcessBroker(options);
}

class InProcessBroker implements MemoryBroker, Exchange {
  readonly kind = "memory";
  readonly maxDeliveries: number | undefined;
  readonly maxUnsettled: number;
  readonly #namespace: string;
  readonly #clock: Clock;
  readonly #queue: Queue;
  readonly #sessions = new Set<MemorySession>();
  readonly #subscriptions = new Set<Pick<Subscription<Weighed>, "offer">>();

  constructor(options: MemoryBrokerOptions) {
    this.maxDeliveries = options.maxDeliveries;
    this.maxUnsettled = options.maxUnsettled ?? Infinity;
    this.#namespace = options.namespace;
    this.#clock = options.clock ?? systemClock;
    this.#queue = new Queue(options.maxDeliveries ?? Infinity);
  }

  get deadLetters(): readonly MemoryMessage[] {
    return this.#queue.deadLetters;
  }

  connect(
    tools: readonly string[],
    signal: AbortSignal,
    carried: UnsettledCalls = noUnsettledCalls,
  ): Promise<BrokerSession> {
    return new Promise((resolve) => {
      signal.throwIfAborted();
      const session = new MemorySession(this, carried);
      this.#sessions.add(session);
      for (const tool of tools) this.bind(session, tool);
      resolve(session);
    });
  }

  publish(
    topic: string,
    payload: Uint8Array,
    properties: MemoryMessage["properties"] = {},
  ): PublishOutcome {
    const message = { topic, payload, properties };
    let isRouted = this.#queue.offer(message);
    if (isRouted) this.#wakeSessions();
    for (const subscription of this.#subscriptions) {
      if (subscription.offer(message)) isRouted = true;
    }
    return isRouted ? "confirmed" : "unroutable";
  }

  subscribe(pattern: string): MemorySubscription {
    return this.listen(pattern, (message) => message);
  }

  dropSessions(): void {
    const cause = new BrokerError("The connection to the memory broker was lost", {
      transient: true,
    });
    for (const session of this.#sessions) session.end({ reason: "lost", cause });
  }

  bind(session: MemorySession, toolName: string): void {
    this.#queue.route(invokeTopic(this.#namespace, toolName));
    session.consume();
  }

  take(): Queued | undefined {
    return this.#queue.take();
  }

  giveBack(returned: readonly Queued[]): void {
    this.#queue.giveBack(returned);
    this.#wakeSessions();
  }

  putAside(rejected: Queued): void {
    this.#queue.putAside(rejected);
  }

  send({ topic, payload, properties }: OutboundMessage): PublishOutcome {
    return this.publish(topic, payload, stamped(properties, this.#clock.nowMs()));
  }

  listen<Heard extends Weighed>(
    pattern: string,
    read: (message: MemoryMessage) => Heard,
    onEnd?: () => void,
  ): Subscription<Heard> {
    const subscription: Subscription<Heard> = new Subscription(pattern, read, () => {
      this.#subscriptions.delete(subscription);
      onEnd?.();
    });
    this.#subscriptions.add(subscription);
    return subscription;
  }

  forget(session: MemorySession): void {
    this.#sessions.delete(session);
  }

  #wakeSessions(): void {
    for (const session of this.#sessions) session.wake();
  }
}
