/**
 * When a message was first to be sent, as its receivers are told.
 */
import type { OutboundMessage } from "./broker.ts";

/**
 * The properties with `timestamp`: the one that is there, however late or often the message is
 * sent, or that of now.
 */
export function stamped(
  properties: OutboundMessage["properties"],
  nowMs: number,
): NonNullable<OutboundMessage["properties"]> {
  return properties?.["timestamp"] === undefined ? { ...properties, timestamp: nowMs } : properties;
}
