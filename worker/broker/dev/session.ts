/**
 * A session on a DevBroker.
 *
 * It is two connections, because a connection that waits in `RECEIVE` answers nothing else:
 * one receives, one publishes; each subscription is one more. The receiving one connects first and
 * names every subscription in its `CONNECT`, so that no call published after an agent saw the
 * worker can slip through. Each connection has a client id of its own that is never used again: the
 * original removes the registration of a reconnected client when it notices the death of the former
 * one.
 */
import { LRUCache } from "lru-cache";
import { invokeTopic } from "../../protocol/topics.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type Delivery,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
} from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { stamped } from "../timestamp.ts";
import { type ClientOptions, expectOk, openClient, propertiesOf, receive } from "./client.ts";
import type { DevConnection } from "./connection.ts";
import { DevSubscription } from "./subscription.ts";
import { type Answer, type DevMessage, encodeCommand, encodePublish } from "./wire.ts";

/**
 * Milliseconds a `RECEIVE` waits for a message. It bounds how late `serve`, `leave` and `pause`
 * take effect, since their commands wait for a `RECEIVE` in progress.
 */
const receiveTimeoutMs = 1_000;

/**
 * Milliseconds a `RECEIVE` of a paused session waits: it asks for what waits already. The least
 * that is heard, because a wait of no time finds nothing even when messages wait.
 */
const remainderTimeoutMs = 1;

/**
 * Message ids remembered, so that a message which came through several subscriptions is handed out
 * once.
 */
const maxRememberedIds = 1_000;

/** Where the DevBroker is and who we are. */
export interface DevBrokerOptions extends ClientOptions {
  readonly namespace: string;
  /** Told about messages that cannot be read and are skipped. */
  readonly log: BrokerLog;
  readonly clock?: Clock;
}

/**
 * Connects a session that serves `tools`. Rejects with BrokerError, and leaves nothing open then.
 */
export async function openSession(
  options: DevBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const patterns = tools.map((tool) => invokeTopic(options.namespace, tool));
  const receiving = stack.use(await openClient(options, patterns, signal));
  const publishing = stack.use(await openClient(options, [], signal));
  const session = new DevSession(receiving, publishing, options, tools);
  stack.move();
  return session;
}

class DevSession implements BrokerSession {
  /** The DevBroker forgets a message when it hands it out. */
  readonly redelivers = false;
  readonly closed: Promise<SessionEnd>;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #receiving: DevConnection;
  readonly #publishing: DevConnection;
  readonly #options: DevBrokerOptions;
  readonly #clock: Clock;
  readonly #subscriptions = new Set<DevSubscription>();
  readonly #seen = new LRUCache<string, true>({ max: maxRememberedIds });
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #ended = new AbortController();
  /** Tools whose calls the server queues for us, as far as we know. */
  readonly #served: Set<string>;
  /** Set once the session is paused; never rejects. */
  #pausing: Promise<void> | undefined;

  constructor(
    receiving: DevConnection,
    publishing: DevConnection,
    options: DevBrokerOptions,
    tools: readonly string[],
  ) {
    this.#receiving = receiving;
    this.#publishing = publishing;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#served = new Set(tools);
    this.closed = this.#end.promise;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    for (const connection of [receiving, publishing]) {
      void connection.closed.then((cause) => this.#finish({ reason: "lost", cause }));
    }
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    // Before the answer, so that a pause which comes meanwhile takes it back.
    this.#served.add(toolName);
    await this.#subscription("SUBSCRIBE", toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    await this.#subscription("UNSUBSCRIBE", toolName, signal);
    this.#served.delete(toolName);
  }

  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const properties = stamped(message.properties, this.#clock.nowMs());
    const line = encodePublish(message.topic, message.payload, properties);
    this.#expectOk(await this.#publishing.command(line, signal), "PUBLISH");
    return "confirmed";
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    const ended = this.#ended.signal;
    const either = AbortSignal.any([signal, ended]);
    await using stack = new AsyncDisposableStack();
    const connection = stack.use(await openClient(this.#options, [pattern], either));
    ended.throwIfAborted();
    const subscription = new DevSubscription(connection, this.#options.log, (cause) => {
      this.#subscriptions.delete(subscription);
      if (cause !== undefined) this.#finish({ reason: "lost", cause });
    });
    this.#subscriptions.add(subscription);
    stack.move();
    return subscription;
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#leaveAll();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const parts = [this.#receiving, this.#publishing, ...this.#subscriptions];
    this.#finish({ reason: "asked" });
    await Promise.all(parts.map((part) => part[Symbol.asyncDispose]()));
  }

  /**
   * A paused session that stayed subscribed would collect calls which nobody ever answers. One that
   * the broker does not let go ends for the same reason.
   */
  async #leaveAll(): Promise<void> {
    try {
      await Promise.all(Array.from(this.#served, (tool) => this.leave(tool, this.#ended.signal)));
    } catch (error) {
      this.#finish({ reason: "lost", cause: error });
    }
  }

  /**
   * The server carries commands out one after the other, so this one waits for the `RECEIVE` in
   * progress.
   */
  async #subscription(
    cmd: "SUBSCRIBE" | "UNSUBSCRIBE",
    toolName: string,
    signal: AbortSignal,
  ): Promise<void> {
    const line = encodeCommand({
      cmd,
      topic_pattern: invokeTopic(this.#options.namespace, toolName),
    });
    this.#expectOk(await this.#receiving.command(line, signal), cmd);
  }

  #expectOk(answer: Answer, command: string): void {
    try {
      expectOk(answer, command);
    } catch (error) {
      // A broker that has forgotten us will not remember; only a new session helps.
      if (answer.status === "ERROR" && answer.code === "NOT_CONNECTED") {
        this.#finish({ reason: "lost", cause: error });
      }
      throw error;
    }
  }

  /**
   * Nothing is fetched that is not asked for: what this worker has no place for waits on the
   * server.
   */
  async *#deliver(): AsyncGenerator<Delivery, void> {
    while (!this.#ended.signal.aborted) {
      // Sent behind the commands of a pause, so the server has nothing for us any more when it
      // finds nothing now.
      const isRemainder = this.#pausing !== undefined;
      const message = await this.#receive(isRemainder ? remainderTimeoutMs : receiveTimeoutMs);
      if (message === undefined && isRemainder) return;
      if (message !== undefined && this.#isNew(message)) yield toDelivery(message);
    }
  }

  /**
   * The next message; undefined when none came in time, and when the session is over: then `closed`
   * says why.
   */
  async #receive(waitMs: number): Promise<DevMessage | undefined> {
    try {
      return await receive(this.#receiving, waitMs, this.#options.log, this.#ended.signal);
    } catch (error) {
      this.#finish({ reason: "lost", cause: error });
      return undefined;
    }
  }

  #isNew(message: DevMessage): boolean {
    if (message.messageId === undefined) return true;
    if (this.#seen.has(message.messageId)) return false;
    this.#seen.set(message.messageId, true);
    return true;
  }

  #finish(end: SessionEnd): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(new BrokerError("The broker session has ended", { transient: true }));
    this.#end.resolve(end);
    for (const part of [this.#receiving, this.#publishing, ...this.#subscriptions]) {
      void part[Symbol.asyncDispose]();
    }
  }
}

function toDelivery(message: DevMessage): Delivery {
  return {
    topic: message.topic,
    payload: message.payload,
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: propertiesOf(message),
    settle: () => Promise.resolve(),
  };
}
