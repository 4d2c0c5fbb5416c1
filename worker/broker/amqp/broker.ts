/**
 * The broker adapter for RabbitMQ, over AMQP 0-9-1.
 *
 * A session is two connections. One receives, with a channel for each queue and subscription, and a
 * further one for each declaration: the broker closes the channel of a command that it refuses. The
 * other publishes. Adapters do not reconnect: `reconnecting` does so for every broker alike.
 */
import type { Broker } from "../broker.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { isLoopback } from "../../support/loopback.ts";
import { parseAmqpUrl } from "./address.ts";
import { type SessionOptions, openSession } from "./session.ts";

export function createAmqpBroker(options: SessionOptions): Broker {
  for (const { isEncrypted, host, name } of parseAmqpUrl(options.url) ?? []) {
    if (!isEncrypted && !isLoopback(host))
      logEvent(options.log, "broker.connection_unencrypted", { host: name });
  }
  return {
    kind: "amqp",
    connect: (tools, signal, unsettled) => openSession(options, tools, signal, unsettled),
  };
}
