/**
 * A session over one session of the library, with a consumer for each queue of the group.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  BrokerError,
  type BrokerSession,
  type ToolPlacement,
  type UnsettledCalls,
} from "../broker.ts";
import { DeliveryBuffer } from "../delivery-buffer.ts";
import { noUnsettledCalls } from "../delivery-tracker.ts";
import { GroupSession } from "../group-session.ts";
import { Routes } from "../routes.ts";
import type { SolaceConfig } from "./config.ts";
import { SolaceConnection } from "./connection.ts";
import type { Flow } from "./flow.ts";
import type { ConnectionOptions } from "./login.ts";
import { Publisher } from "./publisher.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import { Subscriptions } from "./subscription.ts";
import { Topology, type TopologyOptions } from "./topology.ts";

export interface SolaceBrokerOptions
  extends ConnectionOptions, TopologyOptions, Pick<SolaceConfig, "statusDelivery"> {
  /** Consumed queues, with the limit of unsettled deliveries; the library prefetches one more. */
  readonly queues: ReadonlyMap<string, number>;
  readonly placement: ToolPlacement;
  readonly clock?: Clock;
}

export async function openSession(
  options: SolaceBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
  unsettled: UnsettledCalls = noUnsettledCalls,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const connection = await SolaceConnection.open(options, signal);
  const session = stack.use(createSession(connection, options, unsettled));
  await session.begin(tools, signal);
  stack.move();
  return session;
}

function createSession(
  connection: SolaceConnection,
  options: SolaceBrokerOptions,
  unsettled: UnsettledCalls,
): GroupSession {
  const { queues, placement, maxDeliveries, log, clock = systemClock } = options;
  const { ended } = connection;
  const topology = new Topology(options);
  const buffer = new DeliveryBuffer(ended);
  const publisher = new Publisher(connection, clock, options.statusDelivery);
  const subscriptions = new Subscriptions(connection);
  const flowOf = (queue: string): Flow | undefined => consumers.get(queue)?.flow;
  const routes = new Routes({
    queues: [...queues.keys()],
    placement,
    routesElsewhere: false,
    async route(tool, queue, signal) {
      const flow = flowOf(queue);
      if (flow === undefined) throw notConsumed(queue);
      await topology.subscribe(flow, tool, signal);
    },
    async unroute(tool, queue, signal) {
      // Without a flow the consumer of the queue does so when it has one.
      const flow = flowOf(queue);
      try {
        if (flow !== undefined) await topology.unsubscribe(flow, tool, signal);
      } catch (error) {
        if (flow?.isClosing !== true) throw error;
      }
    },
    ended,
    clock,
    log,
  });
  const createConsumer = (queue: string, limit: number): QueueConsumer => {
    const route = async (signal: AbortSignal): Promise<void> => {
      await routes.routeAll(queue, signal);
      await routes.unrouteOthers(queue, signal);
    };
    const common = { topology, unsettled, maxDeliveries, buffer, clock, log };
    return new QueueConsumer(connection, { ...common, queue, limit, route });
  };
  const consumers = new Map(
    Array.from(queues, ([queue, limit]) => [queue, createConsumer(queue, limit)] as const),
  );
  return new GroupSession({
    connection,
    consumers: [...consumers.values()],
    routes,
    deliveries: buffer,
    mayReplay: true,
    publish: (message, signal) => publisher.publish(message, signal),
    subscribe: (pattern, signal) => subscriptions.subscribe(pattern, signal),
    async close() {
      await Promise.all(Array.from(consumers.values(), (consumer) => consumer.close()));
      await connection[Symbol.asyncDispose]();
    },
  });
}

function notConsumed(queue: string): BrokerError {
  return new BrokerError(`The queue ${queue} is not consumed at the moment`, { transient: true });
}
