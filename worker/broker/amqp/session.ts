/**
 * A session with RabbitMQ. It has two connections, because a broker that is short of memory reads
 * no more from one that publishes, settlements included.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import type { BrokerSession, ToolPlacement, UnsettledCalls } from "../broker.ts";
import { DeliveryBuffer } from "../delivery-buffer.ts";
import { noUnsettledCalls } from "../delivery-tracker.ts";
import { GroupSession } from "../group-session.ts";
import { Routes } from "../routes.ts";
import { AmqpConnection, type ConnectionOptions } from "./connection.ts";
import { Publisher } from "./publisher.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import { subscribe } from "./subscription.ts";
import { Topology, type TopologyOptions } from "./topology.ts";

export interface SessionOptions extends Omit<ConnectionOptions, "purpose">, TopologyOptions {
  /** Consumed queues of the group, with the limit of unsettled deliveries of each. */
  readonly queues: ReadonlyMap<string, number>;
  readonly placement: ToolPlacement;
  readonly clock?: Clock;
}

export async function openSession(
  options: SessionOptions,
  tools: readonly string[],
  signal: AbortSignal,
  unsettled: UnsettledCalls = noUnsettledCalls,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const open = async (purpose: ConnectionOptions["purpose"]): Promise<AmqpConnection> =>
    stack.use(await AmqpConnection.open({ ...options, purpose }, signal));
  const receiving = await open("receiving");
  const publishing = await open("publishing");
  endWith(receiving, publishing);
  endWith(publishing, receiving);
  const topology = new Topology(receiving, options);
  if (tools.length === 0) await topology.findExchange(signal);
  const { clock = systemClock } = options;
  const publisher = await Publisher.open(publishing, topology.exchange, clock, signal);
  const connections = { receiving, publishing };
  const session = createSession({ options, ...connections, topology, publisher, unsettled });
  await session.begin(tools, signal);
  stack.move();
  return session;
}

/** Half a session is none. */
function endWith(connection: AmqpConnection, other: AmqpConnection): void {
  void other.closed.then(({ reason, cause }) => {
    if (reason === "lost") connection.lose(cause);
  });
}

interface SessionParts {
  readonly options: SessionOptions;
  readonly receiving: AmqpConnection;
  readonly publishing: AmqpConnection;
  readonly topology: Topology;
  readonly publisher: Publisher;
  readonly unsettled: UnsettledCalls;
}

function createSession(parts: SessionParts): GroupSession {
  const { options, receiving, publishing, topology, publisher, unsettled } = parts;
  const { queues, placement, maxDeliveries, log, clock = systemClock } = options;
  const buffer = new DeliveryBuffer(receiving.ended);
  const routes = new Routes({
    queues: [...queues.keys()],
    placement,
    routesElsewhere: true,
    route: (tool, queue, signal) => topology.bind(tool, queue, signal),
    unroute: (tool, queue, signal) => topology.unbind(tool, queue, signal),
    restore: (signal) => topology.restore(signal),
    ended: receiving.ended,
    clock,
    log,
  });
  const consumers = Array.from(queues, ([queue, limit]) => {
    const route = (signal: AbortSignal): Promise<void> => routes.routeAll(queue, signal);
    const common = { topology, unsettled, maxDeliveries, buffer, clock, log };
    return new QueueConsumer(receiving, { ...common, queue, limit, route });
  });
  return new GroupSession({
    connection: receiving,
    consumers,
    routes,
    deliveries: buffer,
    prepare: (signal) => topology.declareExchanges(signal),
    publish: (message, signal) => publisher.publish(message, signal),
    subscribe: (pattern, signal) => subscribe(receiving, topology.exchange, pattern, signal),
    notReadyReasons: () => [
      ...(publishing.isBlocked ? ["broker takes no messages"] : []),
      ...(routes.areMissing ? ["exchange or bindings are missing"] : []),
    ],
    async close() {
      await Promise.all([receiving, publishing].map((one) => one[Symbol.asyncDispose]()));
    },
  });
}
