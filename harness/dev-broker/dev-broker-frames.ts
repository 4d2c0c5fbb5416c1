/**
 * The frames of the DevBroker protocol as a server reads and writes them: one JSON object per line,
 * one answer per command.
 */
import { defaultReceiveMs } from "../../worker/broker/dev/wire.ts";
import {
  type Json,
  JsonError,
  type JsonLimits,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../worker/support/json/json.ts";
import { sliceMembers } from "../../worker/support/json/members.ts";

/** Bounds of a command, so that one line cannot hold up a server for seconds. */
const commandLimits: JsonLimits = { depth: 200, values: 2_000_000 };

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
