/**
 * A session on a DevBroker.
 *
 * It is two connections, since one that waits in `RECEIVE` answers nothing else: one receives, one
 * publishes; each subscription is one more. The receiving one connects first and names every
 * subscription in its `CONNECT`, so it misses no call of an agent that has seen the worker.
 */
import { invokeTopic } from "../../protocol/topics.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import type {
  BrokerSession,
  BrokerSubscription,
  Delivery,
  OutboundMessage,
  PublishOutcome,
  SessionEnd,
} from "../broker.ts";
import { ConnectionEnd } from "../connection-end.ts";
import type { BrokerLog } from "../log.ts";
import { stamped } from "../timestamp.ts";
import { type ClientOptions, type DevConnection, openClient } from "./connection.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import { DevSubscription } from "./subscription.ts";
import { encodePublish } from "./wire.ts";

export interface DevBrokerOptions extends ClientOptions {
  readonly namespace: string;
  readonly log: BrokerLog;
  readonly clock?: Clock;
}

export async function openSession(
  options: DevBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const patterns = tools.map((tool) => invokeTopic(options.namespace, tool));
  const receiving = stack.use(await openClient(options, patterns, signal));
  const publishing = stack.use(await openClient(options, [], signal));
  const session = new DevSession([receiving, publishing], options, tools);
  stack.move();
  return session;
}

class DevSession implements BrokerSession {
  /** The DevBroker forgets a message when it hands it out. */
  readonly redelivers = false;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #end = new ConnectionEnd();
  readonly closed: Promise<SessionEnd> = this.#end.closed;
  readonly #publishing: DevConnection;
  readonly #options: DevBrokerOptions;
  readonly #consumer: QueueConsumer;
  readonly #owned: Set<AsyncDisposable>;

  constructor(
    [receiving, publishing]: readonly [DevConnection, DevConnection],
    options: DevBrokerOptions,
    tools: readonly string[],
  ) {
    this.#publishing = publishing;
    this.#options = options;
    this.#owned = new Set([receiving, publishing]);
    const { namespace, log } = options;
    const onLost = (cause: unknown): void => this.#finish({ reason: "lost", cause });
    const ended = this.#end.signal;
    const consumer = new QueueConsumer(receiving, { namespace, tools, ended, onLost, log });
    this.#consumer = consumer;
    this.deliveries = { [Symbol.asyncIterator]: () => consumer.deliveries() };
    for (const connection of [receiving, publishing]) void connection.closed.then(onLost);
  }

  serve(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#consumer.serve(toolName, signal);
  }

  leave(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#consumer.leave(toolName, signal);
  }

  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const { clock = systemClock } = this.#options;
    const properties = stamped(message.properties, clock.nowMs());
    const line = encodePublish(message.topic, message.payload, properties);
    await this.#publishing.execute("PUBLISH", line, signal);
    return "confirmed";
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    const ended = this.#end.signal;
    const over = AbortSignal.any([signal, ended]);
    await using stack = new AsyncDisposableStack();
    const connection = stack.use(await openClient(this.#options, [pattern], over));
    ended.throwIfAborted();
    const subscription = new DevSubscription(connection, this.#options.log, (cause) => {
      this.#owned.delete(subscription);
      if (cause !== undefined) this.#finish({ reason: "lost", cause });
    });
    this.#owned.add(subscription);
    stack.move();
    return subscription;
  }

  pause(): Promise<void> {
    return this.#consumer.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const owned = [...this.#owned];
    this.#finish({ reason: "asked" });
    await Promise.all(owned.map((one) => one[Symbol.asyncDispose]()));
  }

  #finish(end: SessionEnd): void {
    if (!this.#end.finish(end)) return;
    for (const one of this.#owned) void one[Symbol.asyncDispose]();
  }
}
