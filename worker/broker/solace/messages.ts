/**
 * Messages of the library: how ours are made, and what is read of those of peers, as Python peers
 * write and read them.
 */
import solace from "solclientjs";
import { BrokerError, type OutboundMessage } from "../broker.ts";
import { stamped } from "../timestamp.ts";
import { textOf, toTopic } from "./library.ts";

const { SDTFieldType, SolclientFactory } = solace;

/** Integers that the library writes as they are; of larger ones it drops bits without a word. */
const integerLimit = 2 ** 47;

/** Values that are no text and no number, and that no JSON text stands for. */
const skipped: readonly solace.SDTFieldType[] = [
  SDTFieldType.NULLTYPE,
  SDTFieldType.MAP,
  SDTFieldType.STREAM,
  SDTFieldType.DESTINATION,
  SDTFieldType.SMF_MESSAGE,
  SDTFieldType.UNKNOWN,
];

/**
 * A message as the library sends it: UTF-8 bytes in the binary attachment, user properties in the
 * types that Python peers give them. Throws BrokerError when its topic is none.
 */
export function toMessage(
  { topic, payload, properties, timeToLiveSeconds }: OutboundMessage,
  nowMs: number,
): solace.Message {
  try {
    const message = SolclientFactory.createMessage();
    message.setDestination(toTopic(topic));
    // Of a string the library would keep the low byte of each character.
    message.setBinaryAttachment(
      Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
    );
    const map = new solace.SDTMapContainer();
    for (const [name, value] of Object.entries(stamped(properties, nowMs))) {
      map.addField(name, toField(value));
    }
    message.setUserPropertyMap(map);
    if (timeToLiveSeconds !== undefined) message.setTimeToLive(timeToLiveSeconds * 1_000);
    // What is worth nothing after a time is not worth keeping then.
    else message.setDMQEligible(true);
    return message;
  } catch (error) {
    throw new BrokerError(`Cannot publish to ${topic}: ${textOf(error)}`, {
      cause: error,
      transient: false,
    });
  }
}

/** The topic that a message was sent to. */
export function topicOf(message: solace.Message): string {
  return message.getDestination()?.getName() ?? "";
}

/** The UTF-8 bytes of a binary or a text message; undefined for a map or a stream. */
export function payloadOf(message: solace.Message): Uint8Array | undefined {
  switch (message.getType()) {
    case solace.MessageType.BINARY: {
      const body = message.getBinaryAttachment() ?? "";
      return typeof body === "string" ? Buffer.from(body, "latin1") : body;
    }
    case solace.MessageType.TEXT: {
      const text = valueOf(message.getSdtContainer());
      return Buffer.from(typeof text === "string" ? text : "");
    }
    default:
      return undefined;
  }
}

/**
 * The user properties of a message: text as it is, numbers and truth values as JSON text; others
 * are left out. Without a `timestamp` it is the time at which the sender's library sent the
 * message, if that is known.
 */
export function propertiesOf(message: solace.Message): Record<string, string> {
  const sentAtMs = message.getSenderTimestamp() ?? undefined;
  // Undefined where the types say null.
  const map = message.getUserPropertyMap() ?? undefined;
  const properties = map?.getKeys().flatMap((name) => {
    const text = toText(map.getField(name));
    return text === undefined ? [] : [[name, text] as const];
  });
  return {
    ...(sentAtMs !== undefined && { timestamp: `${sentAtMs}` }),
    ...Object.fromEntries(properties ?? []),
  };
}

/**
 * How often the broker has handed a message out, this time included; undefined when its queue does
 * not tell.
 */
export function deliveryCountOf(message: solace.Message): number | undefined {
  try {
    return message.getDeliveryCount();
  } catch {
    return undefined;
  }
}

function toField(value: string | number | boolean): solace.SDTField {
  if (typeof value === "string") return solace.SDTField.create(SDTFieldType.STRING, value);
  if (typeof value === "boolean") return solace.SDTField.create(SDTFieldType.BOOL, value);
  const isInteger = Number.isInteger(value) && Math.abs(value) < integerLimit;
  const type = isInteger ? SDTFieldType.INT64 : SDTFieldType.DOUBLETYPE;
  return solace.SDTField.create(type, value);
}

function toText(field: solace.SDTField): string | undefined {
  if (skipped.includes(field.getType())) return undefined;
  const value = valueOf(field);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  // Integers beyond what a number holds are objects of the library's, which spell themselves.
  return value === null || value === undefined ? undefined : `${value as number | string}`;
}

/** Undefined for a value that the library cannot express here, for which it throws. */
function valueOf(field: solace.SDTField | null): unknown {
  try {
    return field?.getValue();
  } catch {
    return undefined;
  }
}
