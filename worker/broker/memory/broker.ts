/**
 * A broker inside this process, for tests and for those who use the worker as a library.
 *
 * It behaves like a broker with one durable queue per tool: a queue exists from the first `serve` of its tool to the
 * `leave` of the last session that serves it, its messages go to one session each, and what a session has not settled
 * comes back when the session ends. Everything else is heard by those who subscribe at the time.
 */
import { invokeTopic } from "../../protocol/topics.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  type Broker,
  BrokerError,
  type BrokerSession,
  type Delivery,
  type OutboundMessage,
  type SessionEnd,
  type Settlement,
} from "../broker.ts";
import { type MemoryMessage, type MemorySubscription, Subscription } from "./subscription.ts";

/** Messages that may wait in the queues. */
const maxWaitingMessages = 10_000;

/** The broker with the face that it shows to agents. */
export interface MemoryBroker extends Broker {
  /** Publishes as an agent does. Throws BrokerError when the queues are full. */
  publish(topic: string, payload: Uint8Array, properties?: MemoryMessage["properties"]): void;
  /** Hears every message whose topic matches, from now on. The caller disposes it. */
  subscribe(pattern: string): MemorySubscription;
  /** Ends every session as if the connection had broken. */
  dropSessions(): void;
}

/** Makes a broker of its own. */
export function createMemoryBroker(options: { namespace: string; clock?: Clock }): MemoryBroker {
  return new InProcessBroker(options.namespace, options.clock ?? systemClock);
}

/** A message on its way to one session. */
interface Waiting {
  readonly toolTopic: string;
  readonly message: MemoryMessage;
  redelivered: boolean;
}

class InProcessBroker implements MemoryBroker {
  readonly kind = "memory";
  readonly namespace: string;
  readonly clock: Clock;
  readonly sessions = new Set<MemorySession>();
  /** Topics that have a queue. */
  readonly #queues = new Set<string>();
  #waiting: Waiting[] = [];
  readonly #subscriptions = new Set<Subscription>();

  constructor(namespace: string, clock: Clock) {
    this.namespace = namespace;
    this.clock = clock;
  }

  connect(tools: readonly string[], signal: AbortSignal): Promise<BrokerSession> {
    return promised(signal, () => {
      const session = new MemorySession(this);
      this.sessions.add(session);
      for (const tool of tools) this.bind(session, tool);
      return session;
    });
  }

  publish(topic: string, payload: Uint8Array, properties: MemoryMessage["properties"] = {}): void {
    const message = { topic, payload, properties };
    if (this.#queues.has(topic)) {
      if (this.#waiting.length >= maxWaitingMessages) {
        throw new BrokerError(`${maxWaitingMessages} messages wait already`, { transient: true });
      }
      this.#waiting.push({ toolTopic: topic, message, redelivered: false });
      this.#wakeSessions();
    }
    for (const subscription of this.#subscriptions) subscription.offer(message);
  }

  subscribe(pattern: string): MemorySubscription {
    const subscription = new Subscription(pattern, () => this.#subscriptions.delete(subscription));
    this.#subscriptions.add(subscription);
    return subscription;
  }

  dropSessions(): void {
    const cause = new BrokerError("The connection to the memory broker was lost", {
      transient: true,
    });
    for (const session of this.sessions) session.end({ reason: "lost", cause });
  }

  bind(session: MemorySession, toolName: string): void {
    const topic = invokeTopic(this.namespace, toolName);
    this.#queues.add(topic);
    session.topics.add(topic);
    session.wake();
  }

  unbind(session: MemorySession, toolName: string): void {
    const topic = invokeTopic(this.namespace, toolName);
    session.topics.delete(topic);
    if ([...this.sessions].some((other) => other.topics.has(topic))) return;
    this.#queues.delete(topic);
    this.#waiting = this.#waiting.filter((waiting) => waiting.toolTopic !== topic);
  }

  /** The first message for one of these topics, taken out of its queue. */
  take(topics: ReadonlySet<string>): Waiting | undefined {
    const index = this.#waiting.findIndex((waiting) => topics.has(waiting.toolTopic));
    return index === -1 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  /** Puts messages back to the head of the queues that still exist. */
  giveBack(returned: readonly Waiting[]): void {
    for (const waiting of returned) waiting.redelivered = true;
    this.#waiting.unshift(...returned.filter((waiting) => this.#queues.has(waiting.toolTopic)));
    this.#wakeSessions();
  }

  #wakeSessions(): void {
    for (const session of this.sessions) session.wake();
  }
}

class MemorySession implements BrokerSession {
  readonly redelivers = true;
  readonly closed: Promise<SessionEnd>;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly topics = new Set<string>();
  readonly #broker: InProcessBroker;
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #unsettled = new Set<Waiting>();
  #isEnded = false;
  #isPaused = false;
  #awake = Promise.withResolvers<void>();

  constructor(broker: InProcessBroker) {
    this.#broker = broker;
    this.closed = this.#end.promise;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
  }

  serve(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#do(signal, () => {
      if (!this.#isPaused) this.#broker.bind(this, toolName);
    });
  }

  leave(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#do(signal, () => this.#broker.unbind(this, toolName));
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const properties = { ...message.properties, timestamp: this.#broker.clock.nowMs() };
    return this.#do(signal, () => this.#broker.publish(message.topic, message.payload, properties));
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

  /** Looks again whether there is something to deliver. */
  wake(): void {
    this.#awake.resolve();
    this.#awake = Promise.withResolvers();
  }

  end(end: SessionEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#broker.sessions.delete(this);
    this.#end.resolve(end);
    this.wake();
    this.#broker.giveBack([...this.#unsettled]);
    this.#unsettled.clear();
  }

  #do(signal: AbortSignal, act: () => void): Promise<void> {
    return promised(signal, () => {
      if (this.#isEnded) throw new BrokerError("The broker session has ended", { transient: true });
      act();
    });
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What waits in the queues was not received yet: a paused session leaves it to others.
    while (!this.#isEnded && !this.#isPaused) {
      const waiting = this.#broker.take(this.topics);
      if (waiting === undefined) await this.#awake.promise;
      else yield this.#toDelivery(waiting);
    }
  }

  #toDelivery(waiting: Waiting): Delivery {
    this.#unsettled.add(waiting);
    const { topic, payload, properties } = waiting.message;
    return {
      topic,
      payload,
      redelivered: waiting.redelivered,
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, value]) => [name, String(value)]),
      ),
      settle: (outcome) => this.#settle(waiting, outcome),
    };
  }

  #settle(waiting: Waiting, outcome: Settlement): Promise<void> {
    if (this.#unsettled.delete(waiting) && outcome === "failed") this.#broker.giveBack([waiting]);
    return Promise.resolve();
  }
}

/** Acts at once and tells of it like a broker that is far away. */
function promised<T>(signal: AbortSignal, act: () => T): Promise<T> {
  return new Promise((resolve) => {
    signal.throwIfAborted();
    resolve(act());
  });
}
