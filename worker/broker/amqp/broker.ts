/**
 * The broker adapter for RabbitMQ, over AMQP 0-9-1.
 *
 * A session is two connections. One takes calls, with a channel for each queue and for each
 * subscription, and declares, on channels of their own: the broker closes the channel of whatever
 * it refuses. The other publishes. amqplib could reconnect by itself; it is not asked to, because
 * `reconnecting` does so for every broker alike.
 */
import type { Broker } from "../broker.ts";
import { isLoopback, warnOfClearText } from "../clear-text.ts";
import { parseAmqpUrl } from "./address.ts";
import { type SessionOptions, openSession } from "./session.ts";

/** Makes the adapter. Nothing is opened before `connect`. */
export function createAmqpBroker(options: SessionOptions): Broker {
  for (const { isEncrypted, host, name } of parseAmqpUrl(options.url) ?? []) {
    if (!isEncrypted && !isLoopback(host)) warnOfClearText(options.log, name);
  }
  return {
    kind: "amqp",
    connect: (tools, signal, carried) => openSession(options, tools, signal, carried),
  };
}
