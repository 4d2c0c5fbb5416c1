/**
 * Deduplicates signals that arrive twice.
 */
import type { Clock } from "./clock.ts";

/**
 * Milliseconds in which repeated signals count as one. A terminal sends Ctrl-C to its process
 * group, and npm, timeout(1) or the launcher forward it.
 */
export const repeatMs = 500;

/** Returns a function that is true for the first of repeated signals. */
export function createSignalFilter(
  clock: Pick<Clock, "monotonicMs">,
): (signal: NodeJS.Signals) => boolean {
  const newsAtMs = new Map<NodeJS.Signals, number>();
  return (signal) => {
    const nowMs = clock.monotonicMs();
    const isNews = nowMs - (newsAtMs.get(signal) ?? -Infinity) >= repeatMs;
    // A repeat does not move the window, so that a held key counts again.
    if (isNews) newsAtMs.set(signal, nowMs);
    return isNews;
  };
}
