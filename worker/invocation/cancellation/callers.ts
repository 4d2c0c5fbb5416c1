/**
 * What identifies the caller of a call, and the sender of a cancel.
 */
import type { Delivery, HeardMessage } from "../../broker/broker.ts";
import type { CancellableCall, MessageSender } from "./cancels.ts";

/** The sender of a message, by its user properties and what the broker verified. */
export function senderOf({ properties, sender }: HeardMessage): MessageSender {
  const { replyTo, clientId } = properties;
  return { replyTo, clientId, user: sender };
}

/**
 * A call as its cancels name it: by the last level of its reply topic, as agents tell answers
 * apart, or by the correlation id of its message.
 */
export function cancellableCall(delivery: Delivery, replyTo: string): CancellableCall {
  const ids = [replyTo.slice(replyTo.lastIndexOf("/") + 1), delivery.correlationId];
  const correlationIds = [...new Set(ids.filter((id) => id !== undefined))];
  return { correlationIds, sender: senderOf(delivery) };
}
