/**
 * The property `timestamp`: when a message was first to be sent.
 */
import type { OutboundMessage } from "./broker.ts";

export function stamped(
  properties: OutboundMessage["properties"],
  nowMs: number,
): NonNullable<OutboundMessage["properties"]> {
  return properties?.["timestamp"] === undefined ? { ...properties, timestamp: nowMs } : properties;
}
