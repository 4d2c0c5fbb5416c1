/**
 * How a consumer of the library is set up, every property of it.
 */
import solace from "solclientjs";
import type { Settlement } from "../../broker.ts";

/** Messages that the library prefetches, its least; it does so while it is stopped too. */
const windowMessages = 1;

export const bindTimeoutMs = 10_000;

export const closeTimeoutMs = 5_000;

/**
 * The library's own limit, for late answers to a bind. Past it the broker keeps a consumer that the
 * library does not know, for the rest of the session.
 */
const lateBindMs = 300_000;

/** Milliseconds before settlements are sent, the library's least. */
const settlementDelayMs = 20;

export const outcomes: Readonly<Record<Settlement, solace.MessageOutcome>> = {
  accepted: solace.MessageOutcome.ACCEPTED,
  failed: solace.MessageOutcome.FAILED,
  rejected: solace.MessageOutcome.REJECTED,
};

export function consumerProperties(queue: string): solace.MessageConsumerProperties {
  return Object.assign(new solace.MessageConsumerProperties(), {
    queueDescriptor: queueDescriptor(queue),
    acknowledgeMode: solace.MessageConsumerAcknowledgeMode.CLIENT,
    requiredSettlementOutcomes: [outcomes.failed, outcomes.rejected],
    windowSize: windowMessages,
    transportAcknowledgeTimeoutInMsecs: settlementDelayMs,
    connectAttempts: 1,
    connectTimeoutInMsecs: lateBindMs,
    // The owner of a flow that is down binds another one.
    reconnectAttempts: 0,
  } satisfies Partial<solace.MessageConsumerProperties>);
}

/** What the broker reports of a queue at a bind. */
export interface QueueFacts {
  /** Whether the broker delivers to one of its consumers only. */
  readonly isExclusive: boolean;
  /** Undefined where the queue has no limit or does not report it. */
  readonly maxDeliveries: number | undefined;
  /** Properties included; Infinity where the queue does not report it. */
  readonly maxMessageBytes: number;
}

export function queueFacts(consumer: solace.MessageConsumer): QueueFacts {
  const { queueProperties } = consumer.getProperties();
  const redeliveries = queueProperties?.maxMessageRedelivery ?? 0;
  // The library's types take this for a property of the class.
  const { accessType } = consumer as unknown as { accessType: solace.QueueAccessType };
  return {
    isExclusive: accessType === solace.QueueAccessType.EXCLUSIVE,
    maxDeliveries: redeliveries === 0 ? undefined : redeliveries + 1,
    maxMessageBytes: queueProperties?.maxMessageSize ?? Infinity,
  };
}

export function queueDescriptor(name: string): solace.QueueDescriptor {
  return new solace.QueueDescriptor({ name, type: solace.QueueType.QUEUE, durable: true });
}
