/**
 * A session over one session of the library: consumers of the group's queues, the publisher of
 * answers, and direct subscriptions.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import { abortable } from "../../support/within.ts";
import {
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type UnsettledCalls,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
  type ToolPlacement,
} from "../broker.ts";
import { DeliveryBuffer } from "../delivery-buffer.ts";
import { noUnsettledCalls } from "../delivery-tracker.ts";
import { openSome, withoutQueue } from "../group-consumer.ts";
import { Routes } from "../routes.ts";
import type { SolaceConfig } from "./config.ts";
import { SolaceConnection } from "./connection.ts";
import type { ConnectionOptions } from "./login.ts";
import type { Flow } from "./flow.ts";
import { Publisher } from "./publisher.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import { Topology, type TopologyOptions } from "./topology.ts";
import { Audience } from "./subscription.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SolaceBrokerOptions
  extends ConnectionOptions, TopologyOptions, Pick<SolaceConfig, "statusDelivery"> {
  /**
   * Consumed queues with the limit of unsettled deliveries of each. The library prefetches one
   * more.
   */
  readonly queues: ReadonlyMap<string, number>;
  readonly placement: ToolPlacement;
  readonly clock?: Clock;
}

/**
 * Connects and serves. Throws BrokerError, or the signal's reason when it aborts; leaves nothing
 * open then.
 */
export async function openSession(
  options: SolaceBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
  carried: UnsettledCalls = noUnsettledCalls,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const connection = await SolaceConnection.open(options, signal);
  const session = stack.use(new SolaceSession(connection, options, carried));
  await session.begin(tools, signal);
  stack.move();
  return session;
}

class SolaceSession implements BrokerSession {
  readonly redelivers = true;
  readonly mayReplay = true;
  readonly deliveries: DeliveryBuffer;
  readonly closed: Promise<SessionEnd>;
  readonly #connection: SolaceConnection;
  readonly #publisher: Publisher;
  readonly #routes: Routes;
  readonly #consumers: ReadonlyMap<string, QueueConsumer>;
  readonly #audience: Audience;
  #consuming: Promise<void> | undefined;
  #pausing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(connection: SolaceConnection, options: SolaceBrokerOptions, carried: UnsettledCalls) {
    const { placement, maxDeliveries, log, clock = systemClock } = options;
    const { ended } = connection;
    const queues = new Topology(options);
    const buffer = new DeliveryBuffer(ended);
    const routes = new Routes({
      queues: [...options.queues.keys()],
      placement,
      routesElsewhere: false,
      route: (tool, queue, signal) => queues.attract(this.#flowOf(queue), tool, signal),
      unroute: (tool, queue, signal) => this.#unroute(queues, tool, queue, signal),
      ended,
      clock,
      log,
    });
    const consumers = Array.from(options.queues, ([queue, limit]) => {
      const permits = carried.permitsOf(queue, limit);
      const attract = async (signal: AbortSignal): Promise<void> => {
        await routes.routeAll(queue, signal);
        await routes.unrouteOthers(queue, signal);
      };
      const common = { queues, maxDeliveries, buffer, clock, log };
      return [
        queue,
        new QueueConsumer(connection, { ...common, queue, permits, attract }),
      ] as const;
    });
    this.#connection = connection;
    this.#publisher = new Publisher(connection, clock, options.statusDelivery);
    this.#routes = routes;
    this.#consumers = new Map(consumers);
    this.#audience = new Audience(connection);
    this.deliveries = buffer;
    this.closed = connection.closed;
  }

  /** Throws BrokerError when it can consume no queue, or the signal's reason. */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    this.#routes.want(tools);
    if (tools.length > 0) await this.#consume(signal);
    this.#connection.ended.throwIfAborted();
  }

  get notReadyReasons(): readonly string[] {
    const isServing = this.#consuming !== undefined && this.#pausing === undefined;
    const isWithoutQueue = isServing && !this.#consumers.values().some(({ isOpen }) => isOpen);
    return isWithoutQueue ? [withoutQueue] : [];
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

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#publisher.publish(message, signal);
  }

  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    return this.#audience.join(pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#stopIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  /**
   * Consumes the queues of the group, once for the session. Throws BrokerError when none can be
   * consumed.
   */
  async #consume(signal: AbortSignal): Promise<void> {
    const { ended } = this.#connection;
    this.#consuming ??= openSome([...this.#consumers.values()], ended).catch((error: unknown) => {
      this.#consuming = undefined;
      throw error;
    });
    await abortable(this.#consuming, signal);
  }

  /** Without a flow, the consumer of the queue unroutes the tool when it has one. */
  async #unroute(
    queues: Topology,
    tool: string,
    queue: string,
    signal: AbortSignal,
  ): Promise<void> {
    const flow = this.#consumers.get(queue)?.flow;
    try {
      if (flow !== undefined) await queues.repel(flow, tool, signal);
    } catch (error) {
      if (flow?.isClosing !== true) throw error;
    }
  }

  #flowOf(queue: string): Flow {
    const flow = this.#consumers.get(queue)?.flow;
    if (flow !== undefined) return flow;
    throw new BrokerError(`The queue ${queue} is not consumed at the moment`, { transient: true });
  }

  async #stopIntake(): Promise<void> {
    await Promise.all(Array.from(this.#consumers.values(), (consumer) => consumer.cancel()));
    this.deliveries.complete();
  }

  async #close(): Promise<void> {
    this.deliveries.complete();
    await Promise.all(Array.from(this.#consumers.values(), (consumer) => consumer.close()));
    await this.#connection[Symbol.asyncDispose]();
  }
}
