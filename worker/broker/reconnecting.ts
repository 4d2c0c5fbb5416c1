/**
 * The one policy for lost connections: a decorator whose sessions outlive connections.
 *
 * ```
 *            first connect                    lost
 *  connect ───────────────► connected ───────────────► reconnecting ──► ended "lost"
 *                               ▲   │                   │    │          (attempts used up, or
 *                               └───┼───── connected ───┘    │           a defect)
 *                                   └──── disposed ──────────┴────► ended "asked"
 * ```
 *
 * While reconnecting, `serve` and `leave` record what the next connection starts with; `publish`
 * and `subscribe` wait. A connection counts when it has all subscriptions again; they miss what is
 * published in between. `deliveries` of a paused session end with the current connection or
 * attempt: later connections only publish. A publish without its confirmation is sent again.
 */
import { Condition } from "../support/condition.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { abortable } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import {
  type Broker,
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type Delivery,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
} from "./broker.ts";
import { DeliveryTracker } from "./delivery-tracker.ts";
import { Connector, type ConnectorOptions } from "./connector.ts";
import { LastingSubscription } from "./lasting-subscription.ts";
import { reasonOf } from "./log.ts";
import { Outbox, endedWith } from "./outbox.ts";

export interface ReconnectingOptions extends ConnectorOptions {
  /** Called whenever `connected` changes, for readiness. */
  readonly onStateChange?: (connected: boolean) => void;
}

export interface ReconnectingSession extends BrokerSession {
  readonly connected: boolean;
  /** Of the connection of the moment: aborts when it is lost, and has aborted without one. */
  readonly connection: AbortSignal;
  /** Connections that were made so far. */
  readonly connections: number;
  /** Messages that wait for the broker's confirmation. */
  readonly unconfirmed: number;
}

/** A broker whose `connect` retries, and whose sessions reconnect. */
export interface ReconnectingBroker extends Broker {
  connect(tools: readonly string[], signal: AbortSignal): Promise<ReconnectingSession>;
}

/** An error that is not transient ends the first `connect` without a retry, and no session. */
export function reconnecting(broker: Broker, options: ReconnectingOptions): ReconnectingBroker {
  return {
    kind: broker.kind,
    async connect(tools, signal) {
      const connector = new Connector(broker.kind, options);
      const first = await connector.connect(() => broker.connect(tools, signal), signal);
      return new SupervisedSession({ broker, connector, options, first, tools });
    },
  };
}

interface SupervisedParts {
  readonly broker: Broker;
  readonly connector: Connector;
  readonly options: ReconnectingOptions;
  readonly first: BrokerSession;
  readonly tools: readonly string[];
}

class SupervisedSession implements ReconnectingSession {
  readonly redelivers: boolean;
  readonly mayReplay: boolean;
  readonly closed: Promise<SessionEnd>;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #parts: Omit<SupervisedParts, "first" | "tools">;
  readonly #clock: Clock;
  readonly #outbox: Outbox;
  readonly #desired: Set<string>;
  readonly #subscriptions = new Set<LastingSubscription>();
  readonly #tracker: DeliveryTracker;
  readonly #stopping = new AbortController();
  readonly #supervision: Promise<void>;
  readonly #end = Promise.withResolvers<SessionEnd>();
  #connections = 0;
  #connection = new AbortController();
  #isEnded = false;
  #isPaused = false;
  #live: BrokerSession | undefined;
  /** An attempt that may have received calls already. Never rejects. */
  #joining: Promise<unknown> | undefined;
  /** Resolves when `#live`, `#joining`, `#isPaused` or `#isEnded` changes. */
  readonly #condition = new Condition();

  constructor({ first, tools, ...parts }: SupervisedParts) {
    const { options } = parts;
    this.#parts = parts;
    this.#clock = options.clock ?? systemClock;
    this.#outbox = new Outbox(this.#clock, ({ topic, payload }, error) => {
      const facts = { err: error, topic, bytes: payload.byteLength };
      logEvent(options.log, "broker.message_refused", facts);
    });
    this.#desired = new Set(tools);
    this.redelivers = first.redelivers;
    this.mayReplay = first.mayReplay ?? false;
    this.#tracker = new DeliveryTracker(first.redelivers);
    this.closed = this.#end.promise;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    this.#setLive(first);
    this.#supervision = this.#supervise(first);
  }

  get connected(): boolean {
    return this.#live !== undefined;
  }

  get connection(): AbortSignal {
    return this.#connection.signal;
  }

  get connections(): number {
    return this.#connections;
  }

  get unconfirmed(): number {
    return this.#outbox.size;
  }

  get notReadyReasons(): readonly string[] {
    return this.#live?.notReadyReasons ?? [];
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const wasDesired = this.#desired.has(toolName);
    this.#desired.add(toolName);
    try {
      await this.#apply((session) => session.serve(toolName, signal));
    } catch (error) {
      if (!wasDesired) this.#desired.delete(toolName);
      throw error;
    }
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#desired.delete(toolName);
    await this.#apply((session) => session.leave(toolName, signal));
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#outbox.publish(message, signal);
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    await using stack = new AsyncDisposableStack();
    const subscription = stack.use(
      new LastingSubscription(pattern, () => this.#subscriptions.delete(subscription)),
    );
    // Later sessions start with it.
    this.#subscriptions.add(subscription);
    for (;;) {
      if (this.#isEnded) throw sessionEnded();
      const session = this.#live;
      if (session === undefined) {
        await abortable(this.#condition.changed, signal);
      } else if (subscription.isOn(session)) {
        stack.move();
        return subscription;
      } else {
        await this.#apply((live) => subscription.moveTo(live, signal));
      }
    }
  }

  async pause(): Promise<void> {
    this.#isPaused = true;
    this.#condition.notify();
    await this.#joining;
    await this.#live?.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#live?.[Symbol.asyncDispose]();
    await this.#supervision;
  }

  /** Acts on the session of the moment. If it ends meanwhile, the next one starts so. */
  async #apply(act: (session: BrokerSession) => Promise<void>): Promise<void> {
    if (this.#isEnded) throw sessionEnded();
    const session = this.#live;
    if (session === undefined) return;
    try {
      await act(session);
    } catch (error) {
      if (!(await endedWith(session, error, this.#clock))) throw error;
    }
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    let last: BrokerSession | undefined;
    while (!this.#isEnded) {
      const session = this.#live;
      if (session !== undefined && session !== last) {
        last = session;
        yield* this.#tracker.follow(session.deliveries);
      } else if (this.#isPaused && this.#joining === undefined) {
        return;
      } else {
        await this.#condition.changed;
      }
    }
  }

  /** Follows one session after the other to its end. Never rejects. */
  async #supervise(first: BrokerSession): Promise<void> {
    const { broker, connector, options } = this.#parts;
    const { signal } = this.#stopping;
    let session = first;
    try {
      for (;;) {
        const connectedAtMs = this.#clock.monotonicMs();
        const { cause } = await session.closed;
        this.#setLive(undefined);
        this.#tracker.connectionLost();
        await session[Symbol.asyncDispose]();
        signal.throwIfAborted();
        const facts = { broker: broker.kind, reason: reasonOf(cause) };
        logEvent(options.log, "broker.connection_lost", facts);
        const livedMs = this.#clock.monotonicMs() - connectedAtMs;
        await connector.pauseAfterLoss(livedMs, signal);
        session = await connector.connect(() => this.#attempt(signal), signal);
      }
    } catch (error) {
      const isAsked = signal.aborted;
      this.#finish(isAsked ? { reason: "asked" } : { reason: "lost", cause: error });
    }
  }

  async #attempt(signal: AbortSignal): Promise<BrokerSession> {
    const opening = this.#open(signal);
    if (!this.#isPaused) this.#joining = opening.catch(() => undefined);
    try {
      return await opening;
    } finally {
      this.#joining = undefined;
      this.#condition.notify();
    }
  }

  /**
   * Opens a session, brings it to what is desired, and makes it live in the same turn. Fails
   * for a tool that cannot be served yet: the next session starts with it.
   */
  async #open(signal: AbortSignal): Promise<BrokerSession> {
    const served = new Set(this.#isPaused ? [] : this.#desired);
    await using stack = new AsyncDisposableStack();
    const session = stack.use(await this.#parts.broker.connect([...served], signal, this.#tracker));
    for (const subscription of this.#subscriptions) await subscription.moveTo(session, signal);
    while (!this.#isPaused) {
      const [missing] = this.#desired.difference(served);
      const [excess] = served.difference(this.#desired);
      if (missing !== undefined) {
        await session.serve(missing, signal);
        served.add(missing);
      } else if (excess !== undefined) {
        await session.leave(excess, signal);
        served.delete(excess);
      } else {
        break;
      }
    }
    if (this.#isPaused) await session.pause();
    // A disposal meanwhile found no session.
    signal.throwIfAborted();
    this.#setLive(session);
    stack.move();
    return session;
  }

  #setLive(session: BrokerSession | undefined): void {
    this.#live = session;
    if (session) this.#connections++;
    if (session) this.#connection = new AbortController();
    else this.#connection.abort(connectionLost());
    if (session) this.#outbox.attach(session);
    else this.#outbox.detach();
    this.#condition.notify();
    this.#parts.options.onStateChange?.(session !== undefined);
  }

  #finish(end: SessionEnd): void {
    this.#isEnded = true;
    this.#outbox.close(sessionEnded(end.cause));
    for (const subscription of this.#subscriptions) subscription.end();
    this.#condition.notify();
    this.#end.resolve(end);
  }
}

function connectionLost(): BrokerError {
  return new BrokerError("The connection to the broker is lost", { transient: true });
}

function sessionEnded(cause?: unknown): BrokerError {
  return new BrokerError("The broker session has ended", { cause, transient: false });
}
