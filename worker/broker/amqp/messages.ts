/**
 * Message headers as user properties. Peers write them with the types of their own language.
 */
import { earliestSentAtMs } from "../../protocol/messages/request.ts";
import { isQueueAddress, queueAddress } from "./routing-keys.ts";

/** Headers that the broker adds to redelivered messages and dead letters. */
const brokerHeader =
  /^x-(?:delivery-count|acquired-count|death|(?:first|last)-death-(?:exchange|queue|reason))$/;

export type Headers = Readonly<Record<string, unknown>>;

/** The user properties of a message: text as it is, null omitted, other values as JSON text. */
export function toProperties(headers: Headers | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) => {
      const text = brokerHeader.test(name) ? undefined : toText(value);
      return text === undefined ? [] : [[name, text] as const];
    }),
  );
}

/**
 * What a message says of its answer and its sender. `reply_to` counts where there is no header
 * `replyTo`. RabbitMQ refuses a message whose `user_id` is not its sender's.
 */
export function answerProperties({ headers, replyTo, correlationId, userId }: AnswerFields): {
  readonly properties: Record<string, string>;
  readonly correlationId?: string;
  readonly sender?: string;
} {
  const properties = toProperties(headers);
  // The broker checks names of queues in the field only.
  for (const name of ["replyTo", "statusTo", "a2aStatusTopic"])
    if (isQueueAddress(properties[name])) delete properties[name];
  if (replyTo) properties["replyTo"] ??= queueAddress(replyTo);
  return {
    properties,
    ...(correlationId && { correlationId }),
    ...(userId && { sender: userId }),
  };
}

export interface AnswerFields {
  readonly headers?: Headers;
  readonly replyTo?: string;
  readonly correlationId?: string;
  readonly userId?: string;
}

/** Deliveries of a message, this one included. Only quorum queues count. */
export function deliveryCount(headers: Headers | undefined, redelivered: boolean): number {
  // Newer brokers keep the count of a dead letter that an operator puts back.
  if (!redelivered) return 1;
  const before = headers?.["x-delivery-count"];
  return Math.max(typeof before === "number" ? before : 1, 1) + 1;
}

/** Needs RabbitMQ 3.12 and `message_interceptors.incoming.set_header_timestamp`. */
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
