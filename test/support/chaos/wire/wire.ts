/**
 * What a chaos can make out on the way between a worker and a broker.
 */
import type { WireEvent } from "../history.ts";

/** The name of the agent, whose answers are looked for. */
export const chaosAgentName = "chaos";

/**
 * Bytes that belong together, and what happens by them. They may be left out without breaking what
 * comes after them.
 */
export interface WireUnit {
  readonly bytes: Buffer;
  readonly events: readonly WireEvent[];
}

/**
 * Reads one connection of a worker. What the units have is all that was read, in order of each
 * direction.
 */
export interface WireReader {
  /** What the worker sends. */
  outward(chunk: Buffer): Iterable<WireUnit>;
  /** What the broker sends. */
  inward(chunk: Buffer): Iterable<WireUnit>;
}

/**
 * The request whose reply topic is in the bytes, as a topic or as a routing key; undefined when
 * there is none.
 */
export function requestIn(bytes: Buffer): string | undefined {
  const reply = new RegExp(`response[./]${chaosAgentName}[./](call-\\d+-\\d+)`);
  return reply.exec(bytes.toString("latin1"))?.[1];
}
