/**
 * The frames of the DevBroker protocol as a client writes and reads them: one JSON object per line,
 * one answer per command.
 */
import {
  JsonError,
  type JsonLimits,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../support/json/json.ts";
import { decodeString, sliceMembers } from "../../support/json/members.ts";

/** Longest command line that the original reads, without newline (measured). */
export const maxLineBytes = 10 * 1024 * 1024;

/**
 * Longest answer line a client reads. The original escapes characters beyond ASCII to up to three
 * times their size, so 10 MiB can come back as 30.
 */
export const maxAnswerBytes = 32 * 1024 * 1024;

/** Milliseconds of a `RECEIVE` that gives no timeout. */
export const defaultReceiveMs = 5_000;

const propertyLimits: JsonLimits = { depth: 20, values: 1_000 };

export type PlainCommand =
  | {
      readonly cmd: "CONNECT";
      readonly client_id: string;
      readonly subscriptions: readonly string[];
    }
  | { readonly cmd: "SUBSCRIBE" | "UNSUBSCRIBE"; readonly topic_pattern: string }
  | { readonly cmd: "RECEIVE"; readonly timeout_ms: number }
  | { readonly cmd: "DISCONNECT" };

export function encodeCommand(command: PlainCommand): Buffer {
  return Buffer.from(`${JSON.stringify(command)}\n`);
}

/**
 * Embeds the payload's JSON text as it is. It stands first because the last of two members with one
 * name wins: not even a payload that is not JSON can replace the topic.
 */
export function encodePublish(
  topic: string,
  payload: Uint8Array,
  userProperties: Readonly<Record<string, string | number | boolean>>,
): Buffer {
  const rest = JSON.stringify({ cmd: "PUBLISH", topic, user_properties: userProperties });
  const tail = Buffer.from(`,${rest.slice(1)}\n`);
  const line = Buffer.concat([Buffer.from('{"payload":'), payload, tail]);
  // A newline is white space in JSON, and would end the frame.
  const payloadEnd = line.length - tail.length;
  for (let at = line.indexOf("\n"); at < payloadEnd; at = line.indexOf("\n", at)) line[at] = 0x20;
  return line;
}

/** A message as a client reads it. `payload` is a view of the line. */
export interface DevMessage {
  readonly messageId: string | undefined;
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly userProperties: JsonObject;
}

export type Answer =
  | { readonly status: "OK"; readonly message?: DevMessage }
  | { readonly status: "TIMEOUT" }
  | { readonly status: "ERROR"; readonly code: string; readonly message: string }
  /** The connection stays usable, because every line answers one command. */
  | { readonly status: "UNREADABLE"; readonly reason: string };

export function decodeAnswer(line: Uint8Array): Answer {
  const members = sliceMembers(line);
  if (members === undefined) return unreadable("the line is not a JSON object");
  const status = decodeString(members.get("status"));
  switch (status) {
    case "OK": {
      const message = members.get("message");
      return message === undefined ? { status } : decodeMessage(message);
    }
    case "TIMEOUT":
      return { status };
    case "ERROR":
      return {
        status,
        code: decodeString(members.get("error_code")) ?? "",
        message: decodeString(members.get("error_message")) ?? "",
      };
    default:
      return unreadable("the line has no known status");
  }
}

export function propertiesOf({ userProperties }: DevMessage): Readonly<Record<string, string>> {
  const properties = Object.entries(userProperties).map(
    ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
  );
  return Object.fromEntries(properties);
}

function decodeMessage(json: Uint8Array): Answer {
  const members = sliceMembers(json);
  const topic = decodeString(members?.get("topic"));
  const payload = members?.get("payload");
  if (topic === undefined || payload === undefined) {
    return unreadable("the message has no topic or no payload");
  }
  const messageId = decodeString(members?.get("message_id"));
  try {
    const properties = parseJson(
      members?.get("user_properties") ?? Buffer.from("{}"),
      propertyLimits,
    );
    const userProperties = isJsonObject(properties) ? properties : {};
    return { status: "OK", message: { messageId, topic, payload, userProperties } };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return unreadable(`the user properties are ${error.message}`);
  }
}

function unreadable(reason: string): Answer {
  return { status: "UNREADABLE", reason };
}
