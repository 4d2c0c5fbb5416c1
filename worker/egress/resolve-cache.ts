/**
 * Keeps the addresses of names for as long as their name servers say, for all sandboxes.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../support/clock.ts";
import type { LookUp, Resolve } from "./resolve.ts";

/** Names whose addresses are kept; the least recently used one makes room. */
export const maxKeptNames = 1_024;

/** Seconds that addresses are kept at least and at most, whatever their name servers say. */
export const minKeptSeconds = 5;
export const maxKeptSeconds = 300;

/**
 * Looks each name up when its addresses are not known or too old. Failures are not kept. Who
 * connects checks the addresses each time: networks differ in what they allow.
 */
export function keptFor(lookUp: LookUp, clock: Pick<Clock, "monotonicMs">): Resolve {
  const kept = new LRUCache<string, { addresses: readonly string[]; untilMs: number }>({
    max: maxKeptNames,
  });
  return async (name, signal) => {
    const known = kept.get(name);
    if (known !== undefined && clock.monotonicMs() < known.untilMs) return known.addresses;
    const { addresses, ttlSeconds } = await lookUp(name, signal);
    const seconds = Math.min(Math.max(ttlSeconds, minKeptSeconds), maxKeptSeconds);
    kept.set(name, { addresses, untilMs: clock.monotonicMs() + seconds * 1_000 });
    return addresses;
  };
}
