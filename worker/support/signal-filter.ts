/**
 * Tells a signal that was sent once, and came twice, from one that was sent again.
 */
import type { Clock } from "./clock.ts";

/**
 * Milliseconds within which the same signal counts as one. A terminal sends Ctrl-C to every process
 * of its group, and npm, timeout(1) or the launcher of an older Node pass on what they got as well.
 */
export const repeatMs = 500;

/** Returns a function that says whether a signal is news. */
export function createSignalFilter(
  clock: Pick<Clock, "monotonicMs">,
): (signal: NodeJS.Signals) => boolean {
  const newsAtMs = new Map<NodeJS.Signals, number>();
  return (signal) => {
    const nowMs = clock.monotonicMs();
    const isNews = nowMs - (newsAtMs.get(signal) ?? -Infinity) >= repeatMs;
    // A repeat does not move the window, so that a key that is held down counts again and again.
    if (isNews) newsAtMs.set(signal, nowMs);
    return isNews;
  };
}
