/**
 * Options of the RabbitMQ adapter for tests, and a log that they can look into.
 */
import { createAmqpBroker } from "../../../worker/broker/amqp/broker.ts";
import type { SessionOptions } from "../../../worker/broker/amqp/session.ts";
import type { Broker, ToolPlacement } from "../../../worker/broker/broker.ts";

/** No files for TLS. */
export const noFiles = {
  caFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  keyPassphrase: undefined,
};

/** What a test says of queues: all tools are in the default queue unless given. */
export interface QueueGiven {
  /** The limit of the default queue. */
  readonly maxUnsettled?: number;
  readonly queueOf?: ToolPlacement["queueOf"];
  /** Tools that other workers serve. */
  readonly foreignTools?: readonly string[];
}

/** Where the calls of tools are to be routed. */
export function placementOf({
  queueOf = () => "default",
  foreignTools = [],
}: QueueGiven): ToolPlacement {
  return { queueOf, foreignTools: () => foreignTools };
}

/** What a test says of a RabbitMQ broker. */
export type AmqpGiven = Partial<SessionOptions> &
  Pick<SessionOptions, "url" | "namespace"> &
  QueueGiven;

/** The options of an operator who sets nothing but what is given. */
export function amqpOptions(all: AmqpGiven): SessionOptions {
  const { maxUnsettled = 8, queueOf: _queueOf, foreignTools: _foreignTools, ...given } = all;
  return {
    tls: noFiles,
    workerId: "worker",
    exchange: undefined,
    group: "default",
    queues: new Map([["default", maxUnsettled]]),
    placement: placementOf(all),
    maxDeliveries: 5,
    consumerTimeoutSeconds: 1_800,
    log: { info: () => {}, warn: () => {} },
    ...given,
  };
}

/** The adapter with {@link amqpOptions}. */
export function amqpBroker(given: AmqpGiven): Broker {
  return createAmqpBroker(amqpOptions(given));
}
