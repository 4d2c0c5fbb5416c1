/**
 * A session over one session of the library: flows from the queues of tools, the intake of their calls, the way out for
 * answers, and what else is heard.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import type {
  BrokerSession,
  BrokerSubscription,
  Delivery,
  OutboundMessage,
  PublishOutcome,
  SessionEnd,
} from "../broker.ts";
import type { SolaceConfig } from "./config.ts";
import { SolaceConnection } from "./connection.ts";
import { type Bind, Intake } from "./intake.ts";
import type { ConnectionOptions } from "./library-session.ts";
import { Publisher } from "./publisher.ts";
import { Queues, type QueuesOptions } from "./queues.ts";
import { Audience } from "./subscription.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SolaceBrokerOptions
  extends ConnectionOptions, QueuesOptions, Pick<SolaceConfig, "statusDelivery"> {
  /** Deliveries that are received and not settled, at most. */
  readonly maxUnsettled: number;
  readonly clock?: Clock;
}

/** Connects and serves. Throws BrokerError, or the signal's reason when it aborts; leaves nothing open then. */
export async function openSession(
  options: SolaceBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const connection = await SolaceConnection.open(options, signal);
  const session = stack.use(new SolaceSession(connection, options));
  for (const tool of tools) await session.serve(tool, signal);
  stack.move();
  return session;
}

class SolaceSession implements BrokerSession {
  readonly redelivers = true;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly closed: Promise<SessionEnd>;
  readonly #connection: SolaceConnection;
  readonly #queues: Queues;
  readonly #publisher: Publisher;
  readonly #intake: Intake;
  readonly #audience: Audience;
  /** The least of what is configured and what the queues say that were bound to. */
  #maxDeliveries: number;
  #pausing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(connection: SolaceConnection, options: SolaceBrokerOptions) {
    const clock = options.clock ?? systemClock;
    this.#connection = connection;
    this.#queues = new Queues(options);
    this.#publisher = new Publisher(connection, clock, options.statusDelivery);
    this.#intake = new Intake(connection, options);
    this.#audience = new Audience(connection);
    this.#maxDeliveries = options.maxDeliveries;
    this.deliveries = this.#intake.deliveries;
    this.closed = connection.closed;
  }

  get maxDeliveries(): number {
    return this.#maxDeliveries;
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const queue = this.#queues.queueOf(toolName);
    const isNew = this.#intake.flowOf(queue) === undefined;
    const bind: Bind = (options, whileBinding) =>
      this.#queues.bind(this.#connection, options, whileBinding);
    const flow = await this.#intake.consume(queue, bind, signal);
    if (flow === undefined) return;
    this.#maxDeliveries = Math.min(this.#maxDeliveries, flow.maxDeliveries ?? Infinity);
    try {
      await this.#queues.attract(flow, toolName, signal);
    } catch (error) {
      if (isNew) await this.#intake.cancel(queue);
      throw error;
    }
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const queue = this.#queues.queueOf(toolName);
    if (!this.#queues.hasOneQueue) return this.#intake.cancel(queue);
    const flow = await this.#intake.flowOf(queue);
    await flow?.repel(this.#queues.topicOf(toolName), signal);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#publisher.publish(message, signal);
  }

  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    return this.#audience.join(pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#intake.complete();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.#intake.close();
    await this.#connection[Symbol.asyncDispose]();
  }
}
