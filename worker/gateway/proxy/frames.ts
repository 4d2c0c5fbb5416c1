/**
 * Frames of a channel: one JSON object a line. Reading is bounded, writing is counted.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Readable, Writable } from "node:stream";
import {
  JsonError,
  type JsonLimits,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../support/json/json.ts";
import { LineSplitter } from "../../support/text/byte-lines.ts";
import { abortable } from "../../support/timeout.ts";

/** Bytes of a request. */
export const maxRequestBytes = 1024 * 1024;
/** Bytes of an answer: a chain has its last result twice. */
export const maxAnswerBytes = 32 * 1024 * 1024;

/** Unsent bytes from which on a peer starts nothing, and writes no answer. */
export const maxUnsentBytes = 1024 * 1024;

/** What a peer did wrong. */
export type ViolationReason =
  | "line_too_long"
  | "not_json"
  | "unknown_type"
  | "invalid_message"
  | "duplicate_id"
  | "too_many_cancels";

/** A frame for which the channel closes. The message is publishable. */
export class ChannelViolation extends Error {
  readonly reason: ViolationReason;

  constructor(reason: ViolationReason, message: string) {
    super(message);
    this.name = "ChannelViolation";
    this.reason = reason;
  }
}

/**
 * The objects of a channel, read as the caller takes them; between those of one chunk the event
 * loop turns. Throws ChannelViolation, or the channel's error. Destroys the channel at its end.
 */
export async function* readFrames(
  channel: Readable,
  maxBytes: number,
  limits?: JsonLimits,
): AsyncGenerator<JsonObject, void, undefined> {
  const splitter = new LineSplitter(maxBytes);
  for await (const chunk of channel as AsyncIterable<Buffer>) {
    const lines = splitter.push(chunk);
    for (const [index, line] of lines.entries()) {
      if (line.kind === "too-long") throw tooLong(maxBytes);
      if (index > 0) await nextTurn();
      yield parseFrame(line.bytes, limits);
    }
    if (splitter.isOverlong) throw tooLong(maxBytes);
  }
}

/** The line of a message. Throws for what is no JSON, such as a cycle. */
export function encodeFrame(message: object): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`);
}

/**
 * Resolves when less than `maxBytes` are unsent, or the channel is closed. Rejects with the
 * signal's reason.
 */
export async function sentBelow(
  maxBytes: number,
  channel: Writable,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  while (channel.writableLength >= maxBytes && !channel.destroyed) {
    const { promise, resolve } = Promise.withResolvers<void>();
    channel.once("drain", resolve).once("close", resolve);
    try {
      await abortable(promise, signal);
    } finally {
      channel.off("drain", resolve).off("close", resolve);
    }
  }
}

/** The object of a line without its end. Throws ChannelViolation. */
export function parseFrame(bytes: Buffer, limits?: JsonLimits): JsonObject {
  const value = parseLine(bytes, limits);
  if (isJsonObject(value)) return value;
  throw new ChannelViolation("not_json", "a line is no JSON object");
}

function parseLine(bytes: Buffer, limits: JsonLimits | undefined): unknown {
  try {
    return parseJson(bytes, limits);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ChannelViolation("not_json", `a line is no JSON: ${error.message}`);
  }
}

function tooLong(maxBytes: number): ChannelViolation {
  return new ChannelViolation("line_too_long", `a line has more than ${maxBytes} bytes`);
}
