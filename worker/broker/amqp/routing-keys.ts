/**
 * Topics as AMQP routing keys and back: `a/b.c/d` is `a.b%2Ec.d`.
 */
import { BrokerError } from "../broker.ts";

/** Longest routing key in bytes: a "short string" of AMQP 0-9-1. */
const maxRoutingKeyBytes = 255;

/** Special in routing keys and bindings, and the sign of an escape. */
const special = /[.*#%]/g;
const escape = /%(?:2E|2A|23|25)/gi;

/** The routing key of a topic. Throws BrokerError when it is too long. */
export function routingKey(topic: string): string {
  return checkLength(topic.split("/").map(escapeLevel).join("."), topic);
}

/** Begins an address that names a queue instead of a topic, as `reply_to` does. */
const queueScheme = "amqp-queue:";

/** Where a message goes. */
export interface Destination {
  readonly exchange: string;
  readonly key: string;
}

export function queueAddress(queue: string): string {
  return `${queueScheme}${queue}`;
}

export function isQueueAddress(text: string | undefined): boolean {
  return text?.startsWith(queueScheme) === true;
}

/** The destination of a topic or queue address. Throws BrokerError when it is too long. */
export function destinationOf(topic: string, exchange: string): Destination {
  if (!topic.startsWith(queueScheme)) return { exchange, key: routingKey(topic) };
  return { exchange: "", key: checkLength(topic.slice(queueScheme.length), topic) };
}

/** Whether a key is a direct reply-to: the broker delivers there what it calls unroutable. */
export function isDirectReply(key: string): boolean {
  return key.startsWith("amq.rabbitmq.reply-to.");
}

/** The inverse of `routingKey`. */
export function topicOf(key: string): string {
  return key.split(".").map(unescapeLevel).join("/");
}

/** The binding key of a pattern. `>` is `*.#`, since `#` alone matches no level too. */
export function bindingKey(pattern: string): string {
  const words = pattern.split("/").map((level) => {
    if (level === "*") return "*";
    return level === ">" ? "*.#" : escapeLevel(level);
  });
  return checkLength(words.join("."), pattern);
}

function escapeLevel(level: string): string {
  return level.replace(special, (character) => encodeByte(character.charCodeAt(0)));
}

function unescapeLevel(word: string): string {
  return word.replace(escape, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
}

function encodeByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase()}`;
}

function checkLength(key: string, topic: string): string {
  const bytes = Buffer.byteLength(key);
  if (bytes <= maxRoutingKeyBytes) return key;
  throw new BrokerError(
    `The topic ${topic} takes a routing key of ${bytes} bytes; AMQP allows ${maxRoutingKeyBytes}`,
    { transient: false },
  );
}
