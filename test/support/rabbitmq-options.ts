/**
 * Options of the RabbitMQ adapter for tests, and a log that they can look into.
 */
import { type AmqpBrokerOptions, createAmqpBroker } from "../../worker/broker/amqp/broker.ts";
import type { Broker } from "../../worker/broker/broker.ts";

const noFiles = {
  caFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  keyPassphrase: undefined,
};

/** The options of an operator who sets nothing but what is given. */
export function amqpOptions(
  given: Partial<AmqpBrokerOptions> & Pick<AmqpBrokerOptions, "url" | "namespace">,
): AmqpBrokerOptions {
  return {
    tls: noFiles,
    workerId: "worker",
    exchange: undefined,
    queueMode: "tool",
    maxDeliveries: 5,
    consumerTimeoutSeconds: 1_800,
    maxUnsettled: 8,
    log: { info: () => {}, warn: () => {} },
    ...given,
  };
}

/** The adapter with {@link amqpOptions}. */
export function amqpBroker(given: Parameters<typeof amqpOptions>[0]): Broker {
  return createAmqpBroker(amqpOptions(given));
}

/** A log that keeps the events it was told. */
export function keptLog(): {
  readonly events: string[];
  info(facts: object, event: string): void;
  warn(facts: object, event: string): void;
} {
  const events: string[] = [];
  const keep = (_facts: object, event: string): void => void events.push(event);
  return { events, info: keep, warn: keep };
}
