/**
 * A session over one connection to RabbitMQ: queues and bindings for the tools, the intake of their calls, and the way
 * out for answers.
 */
import type { Channel } from "amqplib";
import { type Clock, systemClock } from "../../support/clock.ts";
import type {
  BrokerSession,
  BrokerSubscription,
  Delivery,
  OutboundMessage,
  PublishOutcome,
  SessionEnd,
} from "../broker.ts";
import { AmqpConnection, type ConnectionOptions } from "./connection.ts";
import { Intake } from "./intake.ts";
import { Publisher } from "./publisher.ts";
import { AmqpSubscription } from "./subscription.ts";
import { Topology, type TopologyOptions } from "./topology.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SessionOptions extends ConnectionOptions, TopologyOptions {
  /** Deliveries that are handed out and not settled, at most. */
  readonly maxUnsettled: number;
  readonly clock?: Clock;
}

/** Connects and serves. Throws BrokerError, or the signal's reason when it aborts; leaves nothing open then. */
export async function openSession(
  options: SessionOptions,
  tools: readonly string[],
  signal: AbortSignal,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const topology = new Topology(options);
  const connection = stack.use(await AmqpConnection.open(options, signal));
  const declaring = `declare the exchange ${topology.exchange}`;
  await connection.onChannel(declaring, (channel) => topology.declareExchanges(channel), signal);
  const clock = options.clock ?? systemClock;
  const publisher = await Publisher.open(connection, topology.exchange, clock, signal);
  const onCancelled = (queue: string): void => void session.restore(queue);
  const intake = await Intake.open(connection, { ...options, onCancelled }, signal);
  const session = new AmqpSession({ options, topology, connection, publisher, intake });
  for (const tool of tools) await session.serve(tool, signal);
  stack.move();
  return session;
}

interface SessionParts {
  readonly options: SessionOptions;
  readonly topology: Topology;
  readonly connection: AmqpConnection;
  readonly publisher: Publisher;
  readonly intake: Intake;
}

class AmqpSession implements BrokerSession {
  readonly redelivers = true;
  readonly maxDeliveries: number;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly closed: Promise<SessionEnd>;
  readonly #parts: SessionParts;
  /** What `serve` and `leave` said last. */
  readonly #served = new Set<string>();
  #pausing: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.maxDeliveries = parts.options.maxDeliveries;
    this.deliveries = parts.intake.deliveries;
    this.closed = parts.connection.closed;
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    const wasServed = this.#served.has(toolName);
    this.#served.add(toolName);
    try {
      await this.#declare(toolName, signal);
      // Left meanwhile, the tool keeps its queue for other workers.
      if (!this.#served.has(toolName)) return;
      await this.#parts.intake.consume(this.#parts.topology.queueOf(toolName), signal);
    } catch (error) {
      if (!wasServed) this.#served.delete(toolName);
      throw error;
    }
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { topology, intake, connection } = this.#parts;
    this.#served.delete(toolName);
    const queue = topology.queueOf(toolName);
    if (!topology.hasOneQueue) return intake.cancel(queue, signal);
    if (!intake.isConsuming(queue)) return;
    const unbind = (channel: Channel): Promise<void> => topology.unbindQueue(channel, toolName);
    await connection.onChannel(`take ${toolName} from the queue ${queue}`, unbind, signal);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#parts.publisher.publish(message, signal);
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    const { connection, topology } = this.#parts;
    return AmqpSubscription.open(connection, topology.exchange, pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#completeIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.connection[Symbol.asyncDispose]();
  }

  async #declare(toolName: string, signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    const declare = (channel: Channel): Promise<void> => topology.declareQueue(channel, toolName);
    await connection.onChannel(`declare the queue ${topology.queueOf(toolName)}`, declare, signal);
  }

  /** A session that the broker does not let go ends for the same reason. */
  async #completeIntake(): Promise<void> {
    try {
      await this.#parts.intake.complete();
    } catch (error) {
      this.#parts.connection.lose(error);
    }
  }

  /** Serves again what came through a queue that is gone. Never rejects. */
  async restore(queue: string): Promise<void> {
    const { topology, connection, intake, options } = this.#parts;
    options.log.warn({ queue }, "broker ended a consumer");
    try {
      const tools = Array.from(this.#served).filter((tool) => topology.queueOf(tool) === queue);
      for (const tool of tools) await this.#declare(tool, connection.ended);
      if (tools.length > 0) await intake.consume(queue, connection.ended);
    } catch (error) {
      connection.lose(error);
    }
  }
}
