/**
 * Messages of the library, written and read as Python peers do.
 */
import solace from "solclientjs";
import { BrokerError, type OutboundMessage } from "../broker.ts";
import { stamped } from "../timestamp.ts";
import { textOf, toTopic } from "./library/library.ts";

const { SDTFieldType, SolclientFactory } = solace;

/** The library silently drops bits of larger integers. */
const integerLimit = 2 ** 47;

const skipped: readonly solace.SDTFieldType[] = [
  SDTFieldType.NULLTYPE,
  SDTFieldType.MAP,
  SDTFieldType.STREAM,
  SDTFieldType.DESTINATION,
  SDTFieldType.SMF_MESSAGE,
  SDTFieldType.UNKNOWN,
];

/** UTF-8 bytes as binary attachment. Throws BrokerError when the topic is none. */
export function toMessage(
  { topic, payload, properties, timeToLiveSeconds }: OutboundMessage,
  nowMs: number,
): solace.Message {
  try {
    const message = SolclientFactory.createMessage();
    message.setDestination(toTopic(topic));
    // The library keeps the low byte of each character of a string.
    message.setBinaryAttachment(
      Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
    );
    const map = new solace.SDTMapContainer();
    for (const [name, value] of Object.entries(stamped(properties, nowMs))) {
      map.addField(name, toField(value));
    }
    message.setUserPropertyMap(map);
    if (timeToLiveSeconds !== undefined) message.setTimeToLive(timeToLiveSeconds * 1_000);
    // A message that expires is worth nothing as a dead letter.
    else message.setDMQEligible(true);
    return message;
  } catch (error) {
    throw new BrokerError(`Cannot publish to ${topic}: ${textOf(error)}`, {
      cause: error,
      transient: false,
    });
  }
}

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
 * The user properties of a message: text as it is, numbers and booleans as JSON text, others
 * omitted. `timestamp` defaults to the send time that the sender's library set.
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

/** Deliveries of a message, this one included; undefined when its queue does not count. */
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
  // Large integers are objects of the library with a `toString`.
  return value === null || value === undefined ? undefined : `${value as number | string}`;
}

/** Undefined where the library throws: for a value without an equivalent in JavaScript. */
function valueOf(field: solace.SDTField | null): unknown {
  try {
    return field?.getValue();
  } catch {
    return undefined;
  }
}
