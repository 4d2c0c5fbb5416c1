/**
 * The frames of the DevBroker protocol, for both ends of the connection: one JSON object per line,
 * one answer per command.
 */
import {
  type Json,
  JsonError,
  type JsonLimits,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../support/json/json.ts";
import { decodeString, sliceMembers } from "../../support/json/members.ts";

export { type Line, LineSplitter } from "./lines.ts";

/**
 * Longest command line a server reads, newline not counted (measured on the original, which drops
 * longer ones).
 */
export const maxLineBytes = 10 * 1024 * 1024;

/**
 * Longest answer line a client reads. The original writes every character beyond ASCII as an escape
 * sequence of up to three times its size in UTF-8, so the message of a command of 10 MiB can come
 * back as 30.
 */
export const maxAnswerBytes = 32 * 1024 * 1024;

/** Milliseconds a `RECEIVE` waits that does not say how long. */
export const defaultReceiveMs = 5_000;

/** Bounds of a command, so that one line cannot hold up a server for seconds. */
const commandLimits: JsonLimits = { depth: 200, values: 2_000_000 };

/** Bounds of the user properties of a message. */
const propertyLimits: JsonLimits = { depth: 20, values: 1_000 };

/**
 * Error codes of the original; `SUBSCRIBE_FAILED` and `PUBLISH_FAILED` it defines and never sends.
 */
export type DevErrorCode =
  "NOT_CONNECTED" | "INVALID_COMMAND" | "INTERNAL_ERROR" | "SUBSCRIBE_FAILED" | "PUBLISH_FAILED";

/** A command as a server reads it. Payload and properties stay the JSON text that came. */
export type Command =
  | {
      readonly kind: "CONNECT";
      readonly clientId: string | null | undefined;
      readonly subscriptions: readonly string[];
    }
  | { readonly kind: "SUBSCRIBE" | "UNSUBSCRIBE"; readonly topicPattern: string }
  | {
      readonly kind: "PUBLISH";
      readonly topic: string;
      readonly payload: Uint8Array;
      readonly userProperties: Uint8Array;
    }
  | { readonly kind: "RECEIVE"; readonly timeoutMs: number }
  | { readonly kind: "ACK" | "DISCONNECT" }
  /** Not JSON: answered with `INVALID_COMMAND` at any time. */
  | { readonly kind: "unreadable"; readonly message: string }
  /** Unknown, or without a field it needs: answered with `INVALID_COMMAND` once connected. */
  | { readonly kind: "incomplete"; readonly message: string }
  /** Of a wrong type: the original drops the connection without an answer. */
  | { readonly kind: "fatal"; readonly message: string };

/** Reads a command line on the server's side. Never throws. */
export function decodeCommand(line: Uint8Array): Command {
  let document: Json;
  try {
    document = parseJson(line, commandLimits);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { kind: error.reason === "encoding" ? "fatal" : "unreadable", message: error.message };
  }
  if (!isJsonObject(document)) return fatal("a command is a JSON object");
  const { cmd } = document;
  switch (cmd) {
    case "CONNECT":
      return decodeConnect(document);
    case "SUBSCRIBE":
    case "UNSUBSCRIBE":
      return withText(document, "topic_pattern", (topicPattern) => ({ kind: cmd, topicPattern }));
    case "PUBLISH":
      return withText(document, "topic", (topic) => {
        const members = sliceMembers(line);
        if (members === undefined) return { kind: "unreadable", message: "too many fields" };
        return {
          kind: cmd,
          topic,
          payload: members.get("payload") ?? Buffer.from("null"),
          userProperties: members.get("user_properties") ?? Buffer.from("{}"),
        };
      });
    case "RECEIVE": {
      const timeoutMs = document["timeout_ms"] ?? defaultReceiveMs;
      return typeof timeoutMs === "number"
        ? { kind: cmd, timeoutMs }
        : fatal("timeout_ms is a number");
    }
    case "ACK":
    case "DISCONNECT":
      return { kind: cmd };
    default: {
      // A Python peer calls a command that is not there by its own word for nothing.
      const name =
        typeof cmd === "string" ? cmd : JSON.stringify(cmd ?? null).replace(/^null$/, "None");
      return { kind: "incomplete", message: `Unknown command: ${name}` };
    }
  }
}

function decodeConnect(document: JsonObject): Command {
  const clientId = document["client_id"];
  if (clientId !== undefined && clientId !== null && typeof clientId !== "string") {
    return fatal("client_id is a string");
  }
  const subscriptions = document["subscriptions"] ?? [];
  if (!Array.isArray(subscriptions) || !subscriptions.every((one) => typeof one === "string")) {
    return fatal("subscriptions is a list of strings");
  }
  return { kind: "CONNECT", clientId, subscriptions };
}

/**
 * A command that needs the text of `field`; absent it is incomplete, of another type it is fatal.
 */
function withText(document: JsonObject, field: string, make: (text: string) => Command): Command {
  const value = document[field] ?? "";
  if (value === "") return { kind: "incomplete", message: `Missing ${field}` };
  return typeof value === "string" ? make(value) : fatal(`${field} is a string`);
}

function fatal(message: string): Command {
  return { kind: "fatal", message };
}

/** A command of a client, apart from `PUBLISH`. Wire names, because the object is what is sent. */
export type PlainCommand =
  | {
      readonly cmd: "CONNECT";
      readonly client_id: string;
      readonly subscriptions: readonly string[];
    }
  | { readonly cmd: "SUBSCRIBE" | "UNSUBSCRIBE"; readonly topic_pattern: string }
  | { readonly cmd: "RECEIVE"; readonly timeout_ms: number }
  | { readonly cmd: "DISCONNECT" };

/** Encodes a command line, newline included. */
export function encodeCommand(command: PlainCommand): Buffer {
  return encodeLine(command);
}

/**
 * Encodes a `PUBLISH` line, newline included. The payload's JSON text is embedded as it is; it
 * stands first because the last of two members with one name wins, so that not even a payload that
 * is not JSON can replace the topic.
 */
export function encodePublish(
  topic: string,
  payload: Uint8Array,
  userProperties: Readonly<Record<string, string | number | boolean>>,
): Buffer {
  const rest = JSON.stringify({ cmd: "PUBLISH", topic, user_properties: userProperties });
  const tail = Buffer.from(`,${rest.slice(1)}\n`);
  const line = Buffer.concat([Buffer.from('{"payload":'), payload, tail]);
  // A newline inside JSON is white space between values, and would end the frame here.
  const payloadEnd = line.length - tail.length;
  for (let at = line.indexOf("\n"); at < payloadEnd; at = line.indexOf("\n", at)) line[at] = 0x20;
  return line;
}

/** Encodes `{"status":"OK",…}`, newline included. */
export function encodeOk(fields: JsonObject = {}): Buffer {
  return encodeLine({ status: "OK", ...fields });
}

/** Encodes the answer to a `RECEIVE` that met no message. */
export function encodeTimeout(): Buffer {
  return encodeLine({ status: "TIMEOUT" });
}

/** Encodes an error answer, newline included. */
export function encodeError(code: DevErrorCode, message: string): Buffer {
  return encodeLine({ status: "ERROR", error_code: code, error_message: message });
}

/** Encodes the answer to a `RECEIVE` that hands out a message. */
export function encodeMessage(
  messageId: string,
  message: { topic: string; payload: Uint8Array; userProperties: Uint8Array },
): Buffer {
  const head = JSON.stringify({ message_id: messageId, topic: message.topic }).slice(0, -1);
  return Buffer.concat([
    Buffer.from(`{"status":"OK","message":${head},"payload":`),
    message.payload,
    Buffer.from(',"user_properties":'),
    message.userProperties,
    Buffer.from("}}\n"),
  ]);
}

function encodeLine(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

/** A message as a client reads it. `payload` is a view of the line. */
export interface DevMessage {
  readonly messageId: string | undefined;
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly userProperties: JsonObject;
}

/** An answer as a client reads it. */
export type Answer =
  | { readonly status: "OK"; readonly message?: DevMessage }
  | { readonly status: "TIMEOUT" }
  | { readonly status: "ERROR"; readonly code: string; readonly message: string }
  /**
   * The line says nothing we understand; the connection stays usable, because every line answers
   * one command.
   */
  | { readonly status: "UNREADABLE"; readonly reason: string };

/** Reads an answer line on the client's side. Never throws. */
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
