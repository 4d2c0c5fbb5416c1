/**
 * Log events of the connection to the broker, its queues and its routes.
 */
import type { LogEvent } from "./event.ts";

/** Events of the broker's connection, queues and routes, by name. */
export const brokerEvents = {
  "broker.connected": {
    level: "info",
    message: "broker connected",
    facts: { broker: "text", attempt: "number" },
    when: "The broker accepted the connection.",
  },
  "broker.connect_failed": {
    level: "warn",
    message: "broker not reached",
    facts: { broker: "text", attempt: "number", delayMs: "number", reason: "text" },
    when: "An attempt failed, or the broker refused a worker that had logged in before. The next attempt follows after `delayMs`. Repeats of one failure are logged at intervals from a second to five minutes.",
    action: "If it lasts, check broker, address and credentials by `reason`.",
  },
  "broker.connection_lost": {
    level: "warn",
    message: "broker connection lost",
    facts: { broker: "text", reason: "text" },
    when: "The connection ended. The worker reconnects, and calls continue.",
  },
  "broker.connection_unencrypted": {
    level: "warn",
    message: "broker connection is not encrypted: credentials and calls can be read on their way",
    facts: { host: "text" },
    when: "The address of a Solace or RabbitMQ broker has no TLS.",
    action: "Use an address with TLS, such as `tcps://` or `amqps://`.",
  },
  "broker.failed_over": {
    level: "info",
    message: "broker failed over",
    facts: { router: "text" },
    when: "Solace: the other broker of a redundant pair took over.",
  },
  "broker.messages_resent": {
    level: "warn",
    message: "broker may get messages twice",
    facts: { reason: "text" },
    when: "Solace: the broker lost its state of answers in transit, and the library resends them.",
  },
  "broker.blocked": {
    level: "warn",
    message: "broker takes no messages",
    facts: { reason: "text?" },
    when: "RabbitMQ is short of memory or disk and blocks publishers. Answers wait.",
    action: "Free memory or disk of the broker.",
  },
  "broker.unblocked": {
    level: "info",
    message: "broker takes messages again",
    facts: {},
    when: "RabbitMQ unblocked its publishers.",
  },
  "queue.consume_refused": {
    level: "warn",
    message: "queue cannot be consumed",
    facts: { queue: "text", delayMs: "number", reason: "text" },
    when: "The broker refused or ended the queue's consumer. The worker retries after `delayMs`.",
    action: "Apply the remedy in `reason`.",
  },
  "exchange.missing": {
    level: "warn",
    message: "exchange is missing",
    facts: { reason: "text" },
    when: "RabbitMQ: the exchange of calls was deleted. The worker redeclares it.",
    action: "Find out which client deletes it.",
  },
  "routes.restore_failed": {
    level: "warn",
    message: "routes cannot be restored",
    facts: { reason: "text" },
    when: "Exchange or bindings are missing and cannot be declared. The worker retries every 15 seconds.",
    action: "Give the user the permission that `reason` names, or declare them.",
  },
  "routes.restored": {
    level: "info",
    message: "routes are restored",
    facts: {},
    when: "Exchange and bindings exist again.",
  },
  "queue.consume_resumed": {
    level: "info",
    message: "queue is consumed again",
    facts: { queue: "text" },
    when: "The queue's consumer is back.",
  },
  "tool.route_refused": {
    level: "warn",
    message: "tool could not be routed",
    facts: { tool: "text", err: "error" },
    when: "The broker refuses to route the tool's calls into its queue. The worker retries every 15 seconds and serves other tools.",
    action: "Apply the remedy in `err`.",
  },
  "queue.delivery_count_missing": {
    level: "warn",
    message: "queue reports no delivery counts, so no call is POISONED",
    facts: { queue: "text" },
    when: "Solace: once for each queue of a connection.",
    action: "Enable `deliveryCountEnabled` of the queue.",
  },
  "queue.created": {
    level: "info",
    message: "queue created",
    facts: { queue: "text" },
    when: "Solace: the queue was missing, and the worker created it.",
  },
  "queue.subscribe_refused": {
    level: "warn",
    message: "broker refuses to subscribe the queue; calls arrive if it is subscribed already",
    facts: { queue: "text", topic: "text", err: "error" },
    when: "Solace: the user may not change the queue.",
    action: "Add the subscription `topic` to the queue as its administrator.",
  },
  "queue.unsubscribe_refused": {
    level: "warn",
    message:
      "broker refuses to unsubscribe the queue; calls run twice if another queue has the tool",
    facts: { queue: "text", err: "error" },
    when: "Solace: the user may not change the queue.",
    action: "Remove the tool's subscription from the queue as its administrator.",
  },
  "queue.delivery_limit_differs": {
    level: "warn",
    message: "queue has another limit of deliveries than configured",
    facts: { queue: "text", maxDeliveries: "limit", configured: "number" },
    when: "Solace: the queue's own limit, `maxDeliveries`, applies.",
    action: "Align the queue's limit with `BROKER_MAX_DELIVERIES`.",
  },
  "queue.message_size_too_small": {
    level: "warn",
    message: "queue takes smaller messages than calls may be",
    facts: { queue: "text", maxMessageBytes: "number", needed: "number" },
    when: "Solace: the broker refuses larger calls to their senders.",
    action: "Raise `maxMsgSize` of the queue to `needed` bytes.",
  },
  "queue.replayed": {
    level: "warn",
    message: "broker replays calls",
    facts: { queue: "text" },
    when: "Solace: an administrator [replays](brokers.md#solace) calls.",
  },
  "message.unsupported_type": {
    level: "warn",
    message: "message rejected that is neither binary nor text",
    facts: { queue: "text", topic: "text" },
    when: "Solace: a client sent a call as a map or a stream.",
    action: "Make the client send bytes or text.",
  },
  "broker.library_message": {
    level: "warn",
    message: "solclientjs",
    facts: { message: "text" },
    when: "The client library logs `message`. Repeats are logged at growing intervals.",
  },
  "message.unreadable": {
    level: "warn",
    message: "unreadable message skipped",
    facts: { reason: "text" },
    when: "The broker delivered an invalid message.",
    action: "Correct the client that sends it.",
  },
  "subscription.change_failed": {
    level: "warn",
    message: "subscription could not be changed",
    facts: { err: "error", tool: "text", action: "text" },
    when: "The broker refused to `serve` or `leave` a tool. The worker retries every 5 seconds.",
    action: "If it lasts, check the worker's permissions by `err`.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
