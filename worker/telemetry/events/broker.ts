/**
 * Log events: what happens to the connection to the broker, its queues and its routes.
 */
import type { LogEvent } from "./event.ts";

/** What happens to the connection to the broker, its queues and its routes, by name. */
export const brokerEvents = {
  "broker.connected": {
    level: "info",
    message: "broker connected",
    fields: ["broker", "attempt"],
    meaning: "with `attempt`",
  },
  "broker.connect_failed": {
    level: "warn",
    message: "broker not reached",
    fields: ["broker", "attempt", "delayMs", "reason"],
    meaning:
      "an attempt failed, or the broker refused a worker that had logged in before; `reason`, `attempt`, `delayMs` until the next. Repeats of one failure are logged at intervals from a second to five minutes",
  },
  "broker.connection_lost": {
    level: "warn",
    message: "broker connection lost",
    fields: ["broker", "reason"],
    meaning: "it reconnects, and calls continue; `reason`",
  },
  "broker.connection_unencrypted": {
    level: "warn",
    message: "broker connection is not encrypted: credentials and calls can be read on their way",
    fields: ["host"],
    meaning: "Solace or RabbitMQ, with an address without TLS; `host`",
  },
  "broker.failed_over": {
    level: "info",
    message: "broker is another one now",
    fields: ["router"],
    meaning: "Solace: failover to the other one of a redundant pair; `router`",
  },
  "broker.messages_resent": {
    level: "warn",
    message: "broker may get messages twice",
    fields: ["reason"],
    meaning: "Solace: the broker lost its state of answers in transit, and they are resent",
  },
  "broker.blocked": {
    level: "warn",
    message: "broker takes no messages",
    fields: ["reason"],
    meaning: "RabbitMQ is short of memory or disk and blocks publishers; answers wait; `reason`",
  },
  "broker.unblocked": {
    level: "info",
    message: "broker takes messages again",
    fields: [],
    meaning: "RabbitMQ unblocked its publishers",
  },
  "queue.consume_refused": {
    level: "warn",
    message: "queue cannot be consumed",
    fields: ["queue", "delayMs", "reason"],
    meaning:
      "the broker refuses it or ended its consumer; retried after `delayMs`; `queue`; `reason` has the remedy",
  },
  "exchange.missing": {
    level: "warn",
    message: "exchange is missing",
    fields: ["reason"],
    meaning: "RabbitMQ: the exchange of calls was deleted; the worker redeclares it",
  },
  "routes.restore_failed": {
    level: "warn",
    message: "routes cannot be restored",
    fields: ["reason"],
    meaning:
      "exchange or bindings are missing and cannot be declared: `reason`; retried every 15 seconds",
  },
  "routes.restored": {
    level: "info",
    message: "routes are restored",
    fields: [],
    meaning: "exchange and bindings exist again",
  },
  "queue.consume_resumed": {
    level: "info",
    message: "queue is consumed again",
    fields: ["queue"],
    meaning: "the consumer is back; `queue`",
  },
  "tool.route_refused": {
    level: "warn",
    message: "tool could not be routed",
    fields: ["tool", "err"],
    meaning:
      "the broker refuses to route the tool's calls into its queue; retried every 15 seconds; `tool`; `err` has the remedy. Other tools are served",
  },
  "queue.delivery_count_missing": {
    level: "warn",
    message:
      "queue does not tell how often it has delivered a call, so none is POISONED; have its deliveryCountEnabled set",
    fields: ["queue"],
    meaning: "Solace: once for each queue of a connection; `queue`",
  },
  "queue.created": {
    level: "info",
    message: "queue made",
    fields: ["queue"],
    meaning: "Solace: the worker created the missing queue; `queue`",
  },
  "queue.subscribe_refused": {
    level: "warn",
    message:
      "broker lets nobody but its administrator subscribe the queue; calls come if it is subscribed",
    fields: ["queue", "topic", "err"],
    meaning: "Solace: the user may not change the queue; `queue`, `topic`",
  },
  "queue.unsubscribe_refused": {
    level: "warn",
    message:
      "broker lets nobody but its administrator unsubscribe the queue; calls come twice if another queue has the tool too",
    fields: ["queue", "err"],
    meaning: "Solace: the user may not change the queue; `queue`",
  },
  "queue.delivery_limit_differs": {
    level: "warn",
    message: "queue has another limit of deliveries than configured",
    fields: ["queue", "maxDeliveries", "configured"],
    meaning: "Solace: the queue's own limit applies; `queue`, `maxDeliveries`, `configured`",
  },
  "queue.message_size_too_small": {
    level: "warn",
    message: "queue takes smaller messages than calls may be",
    fields: ["queue", "maxMessageBytes", "needed"],
    meaning:
      "Solace: the broker refuses larger calls to their senders; `queue`, `maxMessageBytes`, `needed`",
  },
  "queue.replayed": {
    level: "warn",
    message: "broker replays calls",
    fields: ["queue"],
    meaning: "Solace: an administrator has calls [replayed](brokers.md#solace); `queue`",
  },
  "message.unsupported_type": {
    level: "warn",
    message: "message rejected that is neither binary nor text",
    fields: ["queue", "topic"],
    meaning: "Solace: a client sent a call as a map or a stream",
  },
  "broker.library_message": {
    level: "warn",
    message: "solclientjs",
    fields: ["message"],
    meaning: "messages of the client library, repeats at growing intervals; `message`",
  },
  "message.unreadable": {
    level: "warn",
    message: "unreadable message skipped",
    fields: ["reason"],
    meaning: "the broker delivered an invalid message",
  },
  "subscription.change_failed": {
    level: "warn",
    message: "subscription could not be changed",
    fields: ["err", "tool", "action"],
    meaning: "retried every 5 seconds",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
