/**
 * A session with RabbitMQ: the tools that it serves, the intake of their calls, and the way out for answers. It has two
 * connections, because a broker that is short of memory reads no more from one that publishes, settlements included.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  type BrokerSession,
  type BrokerSubscription,
  type CarriedWork,
  type Delivery,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
  withoutQueue,
} from "../broker.ts";
import { AmqpConnection, type ConnectionOptions } from "./connection.ts";
import { isNotFound } from "./failures.ts";
import { Intake, type IntakeOptions } from "./intake.ts";
import { Publisher } from "./publisher.ts";
import { Serving } from "./serving.ts";
import { AmqpSubscription } from "./subscription.ts";
import { Topology, type TopologyOptions } from "./topology.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SessionOptions
  extends Omit<ConnectionOptions, "purpose">, TopologyOptions, IntakeOptions {
  readonly clock?: Clock;
}

/** Connects and serves. Throws BrokerError, or the signal's reason when it aborts; leaves nothing open then. */
export async function openSession(
  options: SessionOptions,
  tools: readonly string[],
  signal: AbortSignal,
  carried?: CarriedWork,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const open = async (purpose: ConnectionOptions["purpose"]): Promise<AmqpConnection> =>
    stack.use(await AmqpConnection.open({ ...options, purpose }, signal));
  const receiving = await open("receiving");
  const publishing = await open("publishing");
  endTogether(receiving, publishing);
  const topology = new Topology(options);
  const clock = options.clock ?? systemClock;
  const intake = new Intake(receiving, topology, options, carried);
  const { log } = options;
  const serving = new Serving({ connection: receiving, topology, intake, clock, log });
  if (tools.length === 0) await findExchange(receiving, topology, signal);
  else await serving.start(tools, signal);
  const publisher = await Publisher.open(publishing, topology.exchange, clock, signal);
  stack.move();
  return new AmqpSession({ topology, receiving, publishing, intake, serving, publisher });
}

/** Half a session is none. */
function endTogether(one: AmqpConnection, other: AmqpConnection): void {
  const follow = (first: AmqpConnection, second: AmqpConnection): void =>
    void first.closed.then((end) => {
      if (end.reason === "lost") second.lose(end.cause);
    });
  follow(one, other);
  follow(other, one);
}

/** Who serves nothing needs no permission to declare, unless it is there before all others. Throws BrokerError. */
async function findExchange(
  connection: AmqpConnection,
  topology: Topology,
  signal: AbortSignal,
): Promise<void> {
  try {
    const check = topology.checkExchange.bind(topology);
    await connection.onChannel(`find the exchange ${topology.exchange}`, check, signal);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const declare = topology.declareExchange.bind(topology);
    await connection.onChannel(`declare the exchange ${topology.exchange}`, declare, signal);
  }
}

interface SessionParts {
  readonly topology: Topology;
  readonly receiving: AmqpConnection;
  readonly publishing: AmqpConnection;
  readonly intake: Intake;
  readonly serving: Serving;
  readonly publisher: Publisher;
}

class AmqpSession implements BrokerSession {
  readonly redelivers = true;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly closed: Promise<SessionEnd>;
  readonly #parts: SessionParts;
  #pausing: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.deliveries = parts.intake.deliveries;
    this.closed = parts.receiving.closed;
  }

  get impediments(): readonly string[] {
    const { publishing, serving } = this.#parts;
    return [
      ...(publishing.isBlocked ? ["broker takes no messages"] : []),
      ...(serving.isWithoutQueue ? [withoutQueue] : []),
      ...(serving.isWithoutBindings ? ["exchange or bindings are missing"] : []),
    ];
  }

  serve(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#parts.serving.serve(toolName, signal);
  }

  leave(toolName: string, signal: AbortSignal): Promise<void> {
    return this.#parts.serving.leave(toolName, signal);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#parts.publisher.publish(message, signal);
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    const { receiving, topology } = this.#parts;
    return AmqpSubscription.open(receiving, topology.exchange, pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#completeIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { receiving, publishing } = this.#parts;
    await Promise.all([receiving[Symbol.asyncDispose](), publishing[Symbol.asyncDispose]()]);
  }

  async #completeIntake(): Promise<void> {
    await this.#parts.serving.stop();
    this.#parts.intake.complete();
  }
}
