/**
 * Message headers as user properties. Peers write them with the types of their own language.
 */

import { earliestSentAtMs } from "../../protocol/request.ts";
import { isQueueAddress, queueAddress } from "./routing-keys.ts";

/** Headers that the broker adds when it hands a message out again or puts it aside. */
const brokerHeader =
  /^x-(?:delivery-count|acquired-count|death|(?:first|last)-death-(?:exchange|queue|reason))$/;

/** Headers as amqplib reads them. */
export type Headers = Readonly<Record<string, unknown>>;

/**
 * The user properties of a message: text as it is, everything else as its JSON text, and what is
 * null is absent.
 */
export function toProperties(headers: Headers | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) => {
      const text = brokerHeader.test(name) ? undefined : toText(value);
      return text === undefined ? [] : [[name, text] as const];
    }),
  );
}

/** User properties in which senders name topics. */
const topicProperties = ["replyTo", "statusTo", "a2aStatusTopic"];

/**
 * What a call's message says of its answer, beside its headers: `reply_to` counts where no header
 * `replyTo` is.
 */
export function answerProperties({ headers, replyTo, correlationId }: AnswerFields): {
  readonly properties: Record<string, string>;
  readonly correlationId?: string;
} {
  const properties = toProperties(headers);
  // Who may name a queue is for the broker to say, which knows of the field only.
  for (const name of topicProperties) if (isQueueAddress(properties[name])) delete properties[name];
  if (replyTo) properties["replyTo"] ??= queueAddress(replyTo);
  return { properties, ...(correlationId && { correlationId }) };
}

/** Properties of a message as amqplib reads them. */
export interface AnswerFields {
  readonly headers?: Headers;
  readonly replyTo?: string;
  readonly correlationId?: string;
}

/** How often the broker has handed a message out, this time included. Only quorum queues count. */
export function deliveryCount(headers: Headers | undefined, redelivered: boolean): number {
  // Newer brokers leave a dead letter that an operator puts back the count of its former life.
  if (!redelivered) return 1;
  const before = headers?.["x-delivery-count"];
  return Math.max(typeof before === "number" ? before : 1, 1) + 1;
}

/**
 * When the broker took a message, which RabbitMQ 3.12 and later tell if
 * `message_interceptors.incoming.set_header_timestamp` is configured.
 */
export function brokerTimeOf(headers: Headers | undefined): { readonly brokerTimeMs?: number } {
  const brokerTimeMs = headers?.["timestamp_in_ms"];
  const isTime = typeof brokerTimeMs === "number" && brokerTimeMs >= earliestSentAtMs;
  return isTime ? { brokerTimeMs } : {};
}

function toText(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  // amqplib names the type of what has none in JavaScript: `{ "!": "timestamp", value: 1 }`.
  if (typeof value === "object" && "!" in value && "value" in value) return toText(value.value);
  return JSON.stringify(value);
}
