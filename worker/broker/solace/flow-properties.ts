/**
 * How a consumer of the library is set up, every property of it.
 */
import solace from "solclientjs";
import type { Settlement } from "../broker.ts";

/**
 * Messages that the library prefetches, its least. It prefetches one while it is stopped too: that
 * call waits until the flow is opened again, or until the flow is closed and the broker redelivers
 * it.
 */
const windowMessages = 1;

/** Milliseconds for the broker to answer a bind before nobody waits for it any more. */
export const bindTimeoutMs = 10_000;

/** Milliseconds for the broker to let a flow go. */
export const closeTimeoutMs = 5_000;

/**
 * Milliseconds for an answer that comes after all. The library's own limit: of what is answered
 * later than that it knows nothing, and the broker has a consumer for the rest of the session that
 * takes no calls.
 */
const lateBindMs = 300_000;

/** Milliseconds after which the broker hears of settlements, the library's least. */
const settlementDelayMs = 20;

/** How messages end, in the library's words. */
export const outcomes: Readonly<Record<Settlement, solace.MessageOutcome>> = {
  accepted: solace.MessageOutcome.ACCEPTED,
  failed: solace.MessageOutcome.FAILED,
  rejected: solace.MessageOutcome.REJECTED,
};

/** How a flow from a queue is bound. */
export function consumerProperties(queue: string): solace.MessageConsumerProperties {
  return Object.assign(new solace.MessageConsumerProperties(), {
    queueDescriptor: queueDescriptor(queue),
    acknowledgeMode: solace.MessageConsumerAcknowledgeMode.CLIENT,
    requiredSettlementOutcomes: [outcomes.failed, outcomes.rejected],
    windowSize: windowMessages,
    transportAcknowledgeTimeoutInMsecs: settlementDelayMs,
    connectAttempts: 1,
    connectTimeoutInMsecs: lateBindMs,
    // A flow that is down is bound anew by its owner.
    reconnectAttempts: 0,
  } satisfies Partial<solace.MessageConsumerProperties>);
}

/** What the broker tells of a queue when a consumer is bound to it. */
export interface QueueFacts {
  /** Whether the broker delivers to one of its consumers only. */
  readonly isExclusive: boolean;
  /** How often the queue delivers a message; undefined where it has no limit or does not tell. */
  readonly maxDeliveries: number | undefined;
  /**
   * Size of the largest message that the queue takes, properties included; Infinity where it does
   * not tell.
   */
  readonly maxMessageBytes: number;
}

/** The facts of the queue of a bound consumer. */
export function queueFacts(consumer: solace.MessageConsumer): QueueFacts {
  const { queueProperties } = consumer.getProperties();
  const redeliveries = queueProperties?.maxMessageRedelivery ?? 0;
  // Its types take this for a property of the class.
  const { accessType } = consumer as unknown as { accessType: solace.QueueAccessType };
  return {
    isExclusive: accessType === solace.QueueAccessType.EXCLUSIVE,
    maxDeliveries: redeliveries === 0 ? undefined : redeliveries + 1,
    maxMessageBytes: queueProperties?.maxMessageSize ?? Infinity,
  };
}

/** A durable queue by its name. */
export function queueDescriptor(name: string): solace.QueueDescriptor {
  return new solace.QueueDescriptor({ name, type: solace.QueueType.QUEUE, durable: true });
}
