/**
 * A session with RabbitMQ: the tools that it serves, the intake of their calls, and the way out for
 * answers. It has two connections, because a broker that is short of memory reads no more from one
 * that publishes, settlements included.
 */
import type { Channel } from "amqplib";
import { type Clock, systemClock } from "../../support/clock.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type {
  BrokerSession,
  BrokerSubscription,
  UnsettledCalls,
  OutboundMessage,
  PublishOutcome,
  SessionEnd,
  ToolPlacement,
} from "../broker.ts";
import { abortable } from "../../support/within.ts";
import { DeliveryBuffer } from "../delivery-buffer.ts";
import { noUnsettledCalls } from "../delivery-tracker.ts";
import { type BrokerLog, reasonOf } from "../log.ts";
import { openSome, withoutQueue } from "../group-consumer.ts";
import { Routes, type RoutesParts } from "../routes.ts";
import { AmqpConnection, type ConnectionOptions } from "./connection.ts";
import { isNotFound } from "./failures.ts";
import { Publisher } from "./publisher.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import { AmqpSubscription } from "./subscription.ts";
import { Topology, type TopologyOptions } from "./topology.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SessionOptions extends Omit<ConnectionOptions, "purpose">, TopologyOptions {
  /** Queues of the group that are consumed, with the unsettled deliveries of each at most. */
  readonly queues: ReadonlyMap<string, number>;
  readonly placement: ToolPlacement;
  readonly clock?: Clock;
}

/**
 * Connects and serves. Throws BrokerError, or the signal's reason when it aborts; leaves nothing
 * open then.
 */
export async function openSession(
  options: SessionOptions,
  tools: readonly string[],
  signal: AbortSignal,
  carried: UnsettledCalls = noUnsettledCalls,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const open = async (purpose: ConnectionOptions["purpose"]): Promise<AmqpConnection> =>
    stack.use(await AmqpConnection.open({ ...options, purpose }, signal));
  const receiving = await open("receiving");
  const publishing = await open("publishing");
  endTogether(receiving, publishing);
  const session = new AmqpSession(options, receiving, publishing, carried);
  await session.begin(tools, signal);
  stack.move();
  return session;
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

/**
 * Who serves nothing needs no permission to declare, unless it is there before all others. Throws
 * BrokerError.
 */
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

/**
 * How calls are routed. RabbitMQ does not report that an operator removed an exchange or a binding.
 */
function routing(
  connection: AmqpConnection,
  topology: Topology,
  log: BrokerLog,
): Pick<RoutesParts, "route" | "unroute" | "restore"> {
  const { exchange } = topology;
  return {
    route: (tool, queue, signal) =>
      connection.onChannel(
        `bind the queue ${topology.addressOf(queue)}`,
        (channel) => topology.bind(channel, tool, queue),
        signal,
      ),
    async unroute(tool, queue, signal) {
      const unbind = (channel: Channel): Promise<void> => topology.unbind(channel, tool, queue);
      try {
        await connection.onChannel(`unbind the queue ${topology.addressOf(queue)}`, unbind, signal);
      } catch (error) {
        // A queue that does not exist has no binding.
        if (!isNotFound(error)) throw error;
      }
    },
    async restore(signal) {
      const check = (channel: Channel): Promise<void> => topology.checkExchange(channel);
      const declare = (channel: Channel): Promise<void> => topology.declareExchanges(channel);
      try {
        await connection.onChannel(`find the exchange ${exchange}`, check, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        logEvent(log, "exchange.missing", { reason: reasonOf(error) });
      }
      await connection.onChannel(`declare the exchange ${exchange}`, declare, signal);
    },
  };
}

class AmqpSession implements BrokerSession {
  readonly redelivers = true;
  readonly deliveries: DeliveryBuffer;
  readonly closed: Promise<SessionEnd>;
  readonly #receiving: AmqpConnection;
  readonly #publishing: AmqpConnection;
  readonly #topology: Topology;
  readonly #clock: Clock;
  readonly #routes: Routes;
  readonly #consumers: readonly QueueConsumer[];
  #consuming: Promise<void> | undefined;
  #publisher: Publisher | undefined;
  #pausing: Promise<void> | undefined;

  constructor(
    options: SessionOptions,
    receiving: AmqpConnection,
    publishing: AmqpConnection,
    carried: UnsettledCalls,
  ) {
    const { placement, queues, maxDeliveries, log, clock = systemClock } = options;
    const topology = new Topology(options);
    const buffer = new DeliveryBuffer(receiving.ended);
    const routes = new Routes({
      queues: [...queues.keys()],
      placement,
      routesElsewhere: true,
      ...routing(receiving, topology, log),
      ended: receiving.ended,
      clock,
      log,
    });
    this.#receiving = receiving;
    this.#publishing = publishing;
    this.#topology = topology;
    this.#clock = clock;
    this.#routes = routes;
    this.#consumers = Array.from(queues, ([queue, limit]) => {
      const permits = carried.permitsOf(queue, limit);
      const bind = (signal: AbortSignal): Promise<void> => routes.routeAll(queue, signal);
      const common = { topology, maxDeliveries, buffer, clock, log };
      return new QueueConsumer(receiving, { ...common, queue, permits, bind });
    });
    this.deliveries = buffer;
    this.closed = receiving.closed;
  }

  /** Throws BrokerError, or the signal's reason. */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    if (tools.length === 0) {
      await findExchange(this.#receiving, this.#topology, signal);
    } else {
      this.#routes.want(tools);
      await this.#consume(signal);
    }
    const { exchange } = this.#topology;
    this.#publisher = await Publisher.open(this.#publishing, exchange, this.#clock, signal);
  }

  get notReadyReasons(): readonly string[] {
    const isServing = this.#consuming !== undefined && this.#pausing === undefined;
    const isWithoutQueue = isServing && !this.#consumers.some(({ isOpen }) => isOpen);
    return [
      ...(this.#publishing.isBlocked ? ["broker takes no messages"] : []),
      ...(isWithoutQueue ? [withoutQueue] : []),
      ...(this.#routes.areMissing ? ["exchange or bindings are missing"] : []),
    ];
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    await this.#consume(signal);
    await this.#routes.add(toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#routes.delete(toolName, signal);
  }

  async publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    if (this.#publisher === undefined) throw new Error("the session has not started");
    return this.#publisher.publish(message, signal);
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    signal.throwIfAborted();
    return AmqpSubscription.open(this.#receiving, this.#topology.exchange, pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#stopIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const connections = [this.#receiving, this.#publishing];
    await Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()));
  }

  /**
   * Consumes the queues of the group, once for the session. Throws BrokerError when none can be
   * consumed.
   */
  async #consume(signal: AbortSignal): Promise<void> {
    this.#consuming ??= this.#openConsumers(signal).catch((error: unknown) => {
      this.#consuming = undefined;
      throw error;
    });
    await abortable(this.#consuming, signal);
  }

  async #openConsumers(signal: AbortSignal): Promise<void> {
    const declare = (channel: Channel): Promise<void> => this.#topology.declareExchanges(channel);
    await this.#receiving.onChannel(
      `declare the exchange ${this.#topology.exchange}`,
      declare,
      signal,
    );
    await openSome(this.#consumers, signal);
  }

  async #stopIntake(): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer.cancel()));
    this.deliveries.complete();
  }
}
